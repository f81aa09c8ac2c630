// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

class outlet;
class ready_queue;
struct graph_task_settings;

/// What a pass gathers apart from gradients. It stays with the graph task between two stretches of work.
///   RP-2  callbacks are in the order in which they were queued, also where several threads run functions of the pass. All of
///         these threads see one id.
struct pass_notes {
  void queue(std::function<void()> callback);

  std::atomic<std::int64_t> id{-1};  // given out when first asked for
  std::mutex queueing;
  std::vector<std::function<void()>> callbacks;  // run when the pass has finished
  std::uint64_t made_from = 0;                   // in anomaly mode: functions made by the one that runs count from here
};

/// The pass that runs on this thread, from construction to destruction. Passes within passes form a stack.
///   RP-1  the innermost one is that which runs now, also where a deep stack went on at another thread.
class running_pass {
 public:
  /// All arguments outlive it. `function`: the vertex that runs now, or plan::none.
  running_pass(const graph_task_settings& settings, const plan& graph, const ready_queue& ready, const std::uint32_t& function,
               pass_notes& notes) noexcept;
  ~running_pass();
  running_pass(const running_pass&) = delete;
  running_pass& operator=(const running_pass&) = delete;

  /// Null where this thread runs none.
  static running_pass* innermost() noexcept;

  /// How many passes run within each other on the stack of this thread.
  static std::uint32_t depth_of_stack() noexcept;

  /// Where gradients leave the node by, and whether the pass has other functions ready.
  struct way_out {
    outlet* to = nullptr;
    bool more = false;
  };
  /// That of this thread's pass. No outlet where the thread runs no pass, or one that does not leave the node.
  static way_out leaves_by() noexcept;

  /// Null where none runs, as during final callbacks.
  torch::autograd::Node* current_function() const noexcept {
    return function_ == plan::none ? nullptr : graph_.vertices[function_].function;
  }

  /// True if neither this pass nor one around it has inputs.
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

/// Makes the calling thread go on where another one waits, until the end of the scope: its innermost pass is `outer`.
class same_passes {
 public:
  explicit same_passes(running_pass* outer) noexcept;
  ~same_passes();
  same_passes(const same_passes&) = delete;
  same_passes& operator=(const same_passes&) = delete;

 private:
  running_pass* innermost_;
  std::uint32_t depth_;
};

}  // namespace troupe::engine
