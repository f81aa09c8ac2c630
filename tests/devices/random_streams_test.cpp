// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <vector>

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/graph_task.hpp>

#include "support/simulated_fixture.hpp"
#include "support/simulated_lanes.hpp"
#include "support/twin_program.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// Runs a pass as a context does after gradients have come from a peer.
void deliver(const at::Tensor& sent, engine::cpu_workers* workers) {
  engine::graph_task_settings settings;
  settings.sends = {{engine::attach_send({1, {1}}, {sent}), 1}};
  settings.keep_graph = true;
  settings.workers = workers;
  engine::graph_task task(std::move(settings));
  task.deliver(0, {at::ones_like(sent)});
  task.run();
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(random_programs_on_streams_have_the_gradients_of_the_cpu, simulated::fixture) {
  const std::vector<c10::Stream> all{default_stream, stream, other, c10::Stream(c10::Stream::DEFAULT, second),
                                     simulated::new_stream(1)};
  simulated::lanes lanes;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
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
