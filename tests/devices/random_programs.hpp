// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/Stream.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/graph_task.hpp>

#include "support/simulated_lanes.hpp"
#include "support/twin_program.hpp"

namespace troupe::test {

/// Runs a pass as a context does after gradients have come from a peer.
inline void deliver(const at::Tensor& sent, engine::cpu_workers* workers) {
  engine::graph_task_settings settings;
  settings.sends = {{engine::attach_send({1, {1}}, {sent}), 1}};
  settings.keep_graph = true;
  settings.workers = workers;
  engine::graph_task task(std::move(settings));
  task.deliver(0, {at::ones_like(sent)});
  task.run();
}

/// Compares the gradients of random programs on the streams with those on the CPU. Every second program has lanes.
inline void compare_random_programs(const std::vector<c10::Stream>& all, unsigned programs) {
  simulated::lanes lanes;
  for (unsigned seed = 1; seed <= programs; ++seed) {
    const bool with_lanes = seed % 2 == 0;
    twin_program program(seed, all);
    const auto root = program.here.back().sum();
    const auto twin = program.there.back().sum();
    if (!root.requires_grad()) continue;
    for (int pass = 1; pass <= 2; ++pass) {  // the second pass adds to the gradients of the first
      troupe::backward({root}, {}, true);
      const auto read = pass_with_gates(program, [&] {
        if (pass == 1)
          troupe::backward({twin}, {}, {.keep_graph = true, .workers = with_lanes ? &lanes : nullptr});
        else
          deliver(program.there.back(), with_lanes ? &lanes : nullptr);
      });
      for (std::size_t i = 0; i < program.leaves; ++i) {
        const auto& expected = program.here[i].grad();
        BOOST_TEST_REQUIRE(expected.defined() == read[i].defined(), "seed " << seed << ", leaf " << i);
        if (expected.defined()) {
          BOOST_TEST(at::equal(read[i].cpu(), expected), "seed " << seed << ", pass " << pass << ", leaf " << i << ": expected "
                                                                 << expected << ", got " << read[i].cpu());
        }
      }
    }
  }
}

}  // namespace troupe::test
