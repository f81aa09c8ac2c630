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

/// Runs the part of one backward pass that lies on one node. A graph task has no locks: only one thread at a time may call its
/// functions. Another thread may make the next call. A pass that creates a graph, or is observed, uses one thread (GT-7),
/// because libtorch numbers recorded functions by thread.
///   GT-1  a function runs at most once, after it has got all gradients that will reach it.
///   GT-2  the gradients of one input are summed in the serial order of the plan, in whatever order the gradients of sends are
///         delivered.
///   GT-3  a function to which only dropped sends lead never runs (see drop()). The function's hooks never run either.
///   GT-4  after an exception, or after `stop` of run() was set, no further function runs, and the buffers are freed. Functions
///         that have not run keep their saved variables.
///   GT-5  a function or hook may run nested passes, as deep as memory allows. A nested pass gets a fresh stack before the
///         current stack is full.
///   GT-6  a change that a function or its hooks make to the thread's state is undone when the function ends. A change that
///         final callbacks make is undone when the task ends. thread_state.hpp lists what belongs to the thread's state.
///   GT-7  workers do not change the bits of results. Small functions, and functions that end a graph (accumulation, recvs),
///         run on the thread of run(). All functions do if the pass creates a graph, is observed (anomaly mode, profiler), or
///         does not use some output.
///   GT-8  libtorch's functions compute exactly those outputs that the pass uses.
///   GT-9  if nothing is left to run or to deliver, but a function still waits for a gradient, run() throws and calls no final
///         callbacks. A graph with a cycle is an example. Functions to which only dropped sends lead do not count.
///   GT-10  a tensor to which no function of the pass leads gets no gradient, even if other tensors of its message get one. The
///          hooks of this tensor and the functions behind it do not run (as in GT-3). An undefined gradient that a function has
///          returned is delivered like a defined one.
///   GT-11  in a pass with an outlet (graph_task_settings::emit_to), hooks and a user's functions run inside a graph task of
///          libtorch. Callbacks that these hooks and functions queue with libtorch's Engine::queue_callback() run at the end of
///          the pass on this node. While callbacks wait, or a recv has post-hooks, which may queue some, the outlet is told
///          that more may follow.
///   GT-12  in a pass with an outlet, gradients that have reached leaves are added before a user's function, or a function with
///          hooks, begins. This holds with workers too.
///   GT-13  open_sums() gives only sums to which the running function may add in place: nothing else refers to the memory, and
///          all work on it is on the stream of the function.
class graph_task {
 public:
  explicit graph_task(graph_task_settings settings);
  ~graph_task();
  graph_task(graph_task&&) noexcept;
  graph_task& operator=(graph_task&&) noexcept;

  /// Hands the gradients of send `index` to the task. They become the outputs of the send. For each send, deliver() or drop()
  /// is called once.
  /// `unreached`: empty, or one flag for each gradient. A true flag says: on the node that sends the gradients, no function of
  /// the pass leads to this tensor, so the tensor gets no gradient (GT-10).
  /// Throws c10::Error if the count or a shape is wrong; the text has the function's name and the shapes.
  void deliver(std::size_t index, std::vector<at::Tensor> gradients, const std::vector<bool>& unreached = {});

  /// Returns the program place of the functions that are recorded for the gradients of send `index`; empty without a recorder.
  program_place place_of_delivery(std::size_t index) const;

  /// Returns the program place of the functions that the running function records; empty without a recorder, or if no function
  /// runs.
  program_place place_now() const;

  /// Tells the task that send `index` will get no gradients, so that no function waits for this send.
  void drop(std::size_t index);

  /// Runs ready functions on this thread until none is left. Then runs the final callbacks if the task is finished. If `stop`
  /// is set meanwhile, abandons the task. If a function throws, the task frees its buffers and rethrows the exception;
  /// `failed_function()` then names the function.
  void run(const std::atomic<bool>* stop = nullptr);

  /// Replaces graph_task_settings::workers for later calls of run().
  void use_workers(cpu_workers* workers) noexcept;

  /// True if no function is ready and no send is waiting.
  bool finished() const noexcept;
  /// Returns the number of sends that were neither delivered nor dropped.
  std::size_t waiting() const noexcept;
  /// Returns the number of functions that have run so far, including the running function.
  std::uint64_t functions_begun() const noexcept;
  std::string failed_function() const;
  /// In anomaly mode: libtorch's text that says where the failed function and its parents were created.
  std::string failed_trace() const;
  /// In anomaly mode: the remote calls that led to the creation of the failed function, as text; empty if none is known.
  std::string failed_calls() const;

  /// Frees all buffers. No function runs any more, and later deliveries and drops are ignored.
  void abandon();

  /// Return the messages of the recvs to which the roots, or the given sends, lead. Recvs that an earlier call of either
  /// function has returned are left out.
  std::vector<message_id> reach_from_roots();
  std::vector<message_id> reach_from_sends(const std::vector<std::size_t>& sends);

  /// Returns the function that runs now; null if none runs.
  torch::autograd::Node* running() const noexcept;

  /// Returns, for each edge of the running function, the sum of the gradients that have reached the input so far; undefined if
  /// GT-13 does not hold, or if the pass is distributed or creates a graph. The function may add its own gradient to the sum,
  /// and return none for that edge.
  std::vector<at::Tensor> open_sums();

  /// Returns the functions of the task, numbered. Their `missing` counts change while functions run.
  const plan& graph() const noexcept;

  /// With graph_task_settings::capture: moves out one gradient for each input; undefined if no gradient reached the input.
  std::vector<at::Tensor> take_captures();

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace troupe::engine
