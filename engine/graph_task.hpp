// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/engine/graph_task_settings.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::engine {

class plan;

/// One execution of backward on one node: the state machine of the engine. Single owner, no locks; it may move between threads
/// between two calls.
///   GT-1  a function runs at most once, after all gradients that will reach it have.
///   GT-2  sums at one input are in the serial order of the plan, whatever the order of deliveries.
///   GT-3  a function that only dropped sends reach never runs, nor do its hooks.
///   GT-4  after an exception or stop() nothing runs any more, and buffers are freed. Saved variables of what did not run are
///         kept.
///   GT-5  a function or hook may run passes, as deep as memory allows: they go on at a fresh stack before one is full.
///   GT-6  what a function and its hooks change of the thread's state ends with them, and what final callbacks change of it with
///         the task. What belongs to that state is in thread_state.hpp.
///   GT-7  with workers, bits are those without. What ends a graph (accumulation, recvs) and what is small stays on the thread
///         of run(). A pass that creates a graph or is watched (anomaly mode, profiler) stays there altogether, for what it
///         records is numbered by thread, and so does one that leaves outputs out, for GT-8.
///   GT-8  libtorch's functions compute what the pass takes of their outputs, and nothing else.
///   GT-9  a task that ends while functions still wait for gradients, as in a graph with a cycle, throws instead of calling its
///         final callbacks. What only dropped sends reach does not count.
class graph_task {
 public:
  explicit graph_task(graph_task_settings settings);
  ~graph_task();
  graph_task(graph_task&&) noexcept;
  graph_task& operator=(graph_task&&) noexcept;

  /// The gradients of send `index` have arrived: checks count and shapes, then they are its outputs. Throws with the function's
  /// name and both shapes. Each send is delivered or dropped once.
  void deliver(std::size_t index, std::vector<at::Tensor> gradients);

  /// With a recorder: where what is recorded for the gradients of send `index` stands in the program.
  program_place place_of_delivery(std::size_t index) const;

  /// Send `index` will get no gradients: it is taken off the counts of what it leads to.
  void drop(std::size_t index);

  /// Runs ready functions on this thread until none is left, and the final callbacks if the task is finished then. When `stop`
  /// is set, abandons the task. What a function throws comes out as it is, after the task has dropped its buffers;
  /// `failed_function()` then names it.
  void run(const std::atomic<bool>* stop = nullptr);

  /// No function is ready and no send is waiting.
  bool finished() const noexcept;
  /// Sends neither delivered nor dropped.
  std::size_t waiting() const noexcept;
  /// Functions that ran so far, and the one that runs.
  std::uint64_t functions_begun() const noexcept;
  std::string failed_function() const;
  /// In anomaly mode: where the function that failed was made, and its parents, as libtorch prints it.
  std::string failed_trace() const;
  /// In anomaly mode: the calls in which it was made, as its recording tells them; empty where none is known.
  std::string failed_calls() const;

  /// Drops all buffers; nothing runs any more, and what is delivered or dropped later is ignored.
  void abandon();

  /// Recvs that are reachable from the real roots / from these sends and were not returned by an earlier call.
  std::vector<message_id> reach_from_roots();
  std::vector<message_id> reach_from_sends(const std::vector<std::size_t>& sends);

  /// The function that runs now, if run() is under way.
  torch::autograd::Node* running() const noexcept;

  /// The functions of the task, numbered. Counts in it change as they run.
  const plan& graph() const noexcept;

  /// With `capture`: the gradients of the inputs; undefined where none arrived.
  std::vector<at::Tensor> take_captures();

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace troupe::engine
