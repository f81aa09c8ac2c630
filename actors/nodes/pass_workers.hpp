// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/pass_workers_test.cpp
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include <troupe/actors/passes/lane_threads.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/engine/cpu_workers.hpp>

namespace troupe::nodes {

/// The workers for large functions of the passes of a node (settings::pass_workers). The bursts of the node use a pass_workers
/// object while it lives. The object has to outlive these bursts.
///   PX-1  a worker counts as a thread of the node. So a function that runs on a worker can't stop the node: node::stop()
///         throws.
class pass_workers final : public engine::cpu_workers {
 public:
  using used_services = uses<with_actors, with_running, with_bursts, with_pass_workers>;

  /// Throws troupe::error (function_failed) if the system gives fewer threads.
  pass_workers(used_services here, std::size_t count);
  ~pass_workers() override;

  void post(std::function<void()> work) override { threads_.post(std::move(work)); }
  engine::lane* lane_of(c10::Device device) noexcept override { return threads_.lane_of(device); }

 private:
  void call_worker(engine::serve_lane what) override { threads_.call_worker(std::move(what)); }

  const used_services here_;
  passes::lane_threads threads_;
};

}  // namespace troupe::nodes
