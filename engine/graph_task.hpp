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

/// One execution of backward on one node: the state machine of the engine. A graph task has one owner at a time and no locks.
/// Another thread may become the owner between two calls. libtorch numbers recorded functions by thread, so a pass that creates
/// a graph or is observed needs one thread (GT-7).
///   GT-1  a function runs at most once, after it has got all gradients that will reach it.
///   GT-2  the gradients of one input are summed in the serial order of the plan, in whatever order sends are delivered.
///   GT-3  a function that only dropped sends reach never runs. The function's hooks never run either.
///   GT-4  after an exception, or after `stop` of run() was set, no function runs any more, and buffers are freed. Functions
///         that did not run keep their saved variables.
///   GT-5  a function or hook may run nested passes, as deep as memory allows: a nested pass starts on a fresh stack before
///         a stack is full.
///   GT-6  a change that a function or its hooks make to the thread's state is undone when the function ends. A change that
///         final callbacks make is undone when the task ends. thread_state.hpp lists what belongs to the thread's state.
///   GT-7  with workers, results have the same bits as without. Small functions and those that end a graph (accumulation,
///         recvs) stay on the thread of run(). So does all of a pass that creates a graph, is observed (anomaly mode,
///         profiler) or leaves out outputs.
///   GT-8  libtorch's functions compute exactly those outputs that the pass uses.
///   GT-9  a task that ends while functions still wait for gradients, as in a graph with a cycle, throws instead of calling
///         its final callbacks. Functions that only dropped sends reach do not count.
///   GT-10  a tensor to which no function of the pass leads gets no gradient, even if other tensors of its message get one. The
///          hooks of this tensor and the functions behind it do not run (as in GT-3). An undefined gradient that a function has
///          returned is delivered.
///   GT-11  with an outlet, hooks and a user's functions run inside a graph task of libtorch. Callbacks that these hooks and
///          functions queue with libtorch's Engine::queue_callback() run at the end of the pass on this node.
///   GT-12  with an outlet, a user's function, or a function with hooks, begins only after all gradients that have reached
///          leaves were added, with workers too.
class graph_task {
 public:
  explicit graph_task(graph_task_settings settings);
  ~graph_task();
  graph_task(graph_task&&) noexcept;
  graph_task& operator=(graph_task&&) noexcept;

  /// Delivers the gradients of send `index`, which become the outputs of the send. Each send is delivered or dropped once.
  /// `unreached`: empty, or one flag for each gradient. True: on the node that sends the gradients, no function of the pass
  /// leads to the tensor. Such an output is dropped (GT-10).
  /// Throws c10::Error if the count or a shape is wrong; the text has the function's name and the shapes.
  void deliver(std::size_t index, std::vector<at::Tensor> gradients, const std::vector<bool>& unreached = {});

  /// With a recorder: the program place of everything that is recorded for the gradients of send `index`.
  program_place place_of_delivery(std::size_t index) const;

  /// With a recorder: the program place of everything that the running function records; empty if no function runs.
  program_place place_now() const;

  /// Send `index` will get no gradients. The functions that the send leads to no longer wait for this send.
  void drop(std::size_t index);

  /// Runs ready functions on this thread until none is left. Then runs the final callbacks if the task is finished. If `stop`
  /// is set meanwhile, abandons the task. If a function throws, the task frees its buffers and rethrows the exception;
  /// `failed_function()` then names the function.
  void run(const std::atomic<bool>* stop = nullptr);

  /// Replaces graph_task_settings::workers for later calls of run().
  void use_workers(cpu_workers* workers) noexcept;

  /// True if no function is ready and no send is waiting.
  bool finished() const noexcept;
  /// The number of sends that were neither delivered nor dropped.
  std::size_t waiting() const noexcept;
  /// The number of functions that ran so far, including the running one.
  std::uint64_t functions_begun() const noexcept;
  std::string failed_function() const;
  /// In anomaly mode: where the failed function and its parents were created, as libtorch prints it.
  std::string failed_trace() const;
  /// In anomaly mode: the remote calls in which the failed function was created, according to its recording; empty if the
  /// recording has none.
  std::string failed_calls() const;

  /// Frees all buffers. No function runs any more, and later deliveries and drops are ignored.
  void abandon();

  /// The messages of the recvs that the roots lead to, or that `sends` lead to. Recvs that an earlier call has returned are
  /// left out.
  std::vector<message_id> reach_from_roots();
  std::vector<message_id> reach_from_sends(const std::vector<std::size_t>& sends);

  /// The function that runs now; null if none runs.
  torch::autograd::Node* running() const noexcept;

  /// The numbered functions of the task. Counts in the plan change while the functions run.
  const plan& graph() const noexcept;

  /// With `capture`: one gradient per input; undefined if no gradient reached the input.
  std::vector<at::Tensor> take_captures();

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace troupe::engine
