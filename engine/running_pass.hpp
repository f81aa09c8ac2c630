// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/nested_test.cpp, tests/engine/parallel_state_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/engine/plan.hpp>
#include <troupe/engine/surroundings.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::engine {

class outlet;
class ready_queue;
struct graph_task_settings;

/// All that a pass collects apart from gradients. The notes stay with the graph task between two bursts.
///   RP-2  callbacks are kept in the order in which they were queued, even if several threads run functions of the pass. All
///         of these threads see the same id.
struct pass_notes {
  void queue(std::function<void()> callback);
  std::vector<std::function<void()>> take_callbacks();
  /// Whether a callback is queued, here or with libtorch.
  bool has_callbacks();

  std::atomic<std::int64_t> id{-1};  // drawn at the first request
  checked_mutex queueing;
  std::vector<std::function<void()>> callbacks TROUPE_GUARDED_BY(queueing);  // run when the pass has finished
  std::atomic<bool> has_queued{false};        // whether a callback was ever queued: most passes need no lock
  bool has_functions_away = false;            // whether functions of the pass wait or run in lanes
  bool asks_libtorch = false;                 // whether functions may queue callbacks with libtorch (GT-11)
  std::uint64_t made_from = 0;                // in anomaly mode: the sequence number when the running function began
  std::uint32_t with_open_sums = plan::none;  // the last function that was given open sums (GT-13)
  std::vector<bool> unreached;                // of the recv that runs: see outlet; empty if all inputs are reached
};

/// Marks a pass as the one that runs on this thread, from construction to destruction. Nested passes form a stack.
///   RP-1  innermost() gives the pass that runs now, even if the pass runs on a fresh stack of another thread
///         (on_fresh_stack()).
class running_pass {
 public:
  /// All arguments must outlive the object. `function`: the vertex that runs now, or plan::none.
  running_pass(const graph_task_settings& settings, const plan& graph, const ready_queue& ready, const std::uint32_t& function,
               pass_notes& notes) noexcept;
  ~running_pass();
  running_pass(const running_pass&) = delete;
  running_pass& operator=(const running_pass&) = delete;

  /// Returns the pass that this thread runs now; null if the thread runs no pass.
  static running_pass* innermost() noexcept;

  /// Returns the number of nested passes on the stack of this thread.
  static std::uint32_t depth_of_stack() noexcept;

  /// The outlet by which gradients leave the node, and the facts that the outlet needs about the recv that runs.
  struct way_out {
    outlet* to = nullptr;
    const std::vector<bool>* unreached = nullptr;
    bool more = false;
  };
  /// Returns the way out of the pass that this thread runs. The outlet is null if the thread runs no pass, or a local pass.
  static way_out leaves_by() noexcept;

  /// Returns the function that runs now; null if none runs, for example during final callbacks.
  torch::autograd::Node* current_function() const noexcept {
    return function_ == plan::none ? nullptr : graph_.vertices[function_].function;
  }

  /// True if the function that runs now has got sums to add to in place (graph_task::open_sums()).
  bool has_open_sums() const noexcept { return function_ != plan::none && notes_.with_open_sums == function_; }

  /// True if this pass and all passes around it have no inputs, and put the gradients of leaves into `.grad`.
  bool all_of_each_graph_runs() const noexcept;

  const graph_task_settings& settings() const noexcept { return settings_; }
  const plan& graph() const noexcept { return graph_; }
  pass_notes& notes() noexcept { return notes_; }
  running_pass* outer() noexcept { return outer_; }

 private:
  const graph_task_settings& settings_;
  const plan& graph_;
  const ready_queue& ready_;
  const std::uint32_t& function_;
  pass_notes& notes_;
  running_pass* outer_;
};

/// Until the end of the scope, `outer` is the innermost pass of the calling thread, and `around` are its surroundings. Used on
/// a thread that continues the work of a waiting thread.
class same_passes {
 public:
  same_passes(running_pass* outer, surroundings* around) noexcept;
  ~same_passes();
  same_passes(const same_passes&) = delete;
  same_passes& operator=(const same_passes&) = delete;

 private:
  running_pass* innermost_;
  surroundings* around_;
};

/// The largest number of nested passes on one stack. The next nested pass gets a fresh stack.
constexpr std::uint32_t most_passes_on_a_stack = 60;

/// Calls `what` on a new thread, which has a fresh stack, and waits until `what` has ended.
///   FS-1  `what` finds the calling thread's state: thread-local state of libtorch, grad mode, devices, streams, the stack of
///         passes, and the surroundings (SR-1).
///   FS-2  warnings of `what` reach the warning handler of the calling thread. An exception of `what` is rethrown unchanged,
///         even if the warning handler throws too.
/// The new thread does the work of the calling thread alone and waits for no other thread, so nesting cannot deadlock at any
/// depth.
void on_fresh_stack(const std::function<void()>& what);

}  // namespace troupe::engine
