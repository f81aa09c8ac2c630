// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/torch.h>
#include <troupe/troupe.hpp>

#include "apps/charlm/gradient_check.hpp"
#include "apps/charlm/pipeline.hpp"
#include "apps/charlm/stage_module.hpp"
#include "support/simulated_fixture.hpp"

using namespace troupe::apps::charlm;
namespace simulated = troupe::test::simulated;

BOOST_FIXTURE_TEST_SUITE(stages_on_an_accelerator, simulated::fixture)

namespace {

constexpr model_shape small{.vocabulary = 11, .blocks = 2, .width = 16, .heads = 2, .context = 8};

batch some_windows(std::int64_t count) {
  const auto tokens = at::arange(count * 8, at::kLong).remainder(11).view({count, 8});
  return {tokens, tokens.remainder(7)};
}

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  return options;
}

struct cluster {
  cluster() {
    for (troupe::node* each : {&one, &two}) {
      add_stage_type(*each);
      driver.join("127.0.0.1", each->port());
    }
  }
  std::vector<troupe::peer> stages() { return {driver.peer("one"), driver.peer("two")}; }

  troupe::node driver{named("driver")};
  troupe::node one{named("one")};
  troupe::node two{named("two")};
};

}  // namespace

BOOST_AUTO_TEST_CASE(parameters_are_on_the_device_with_their_values) {  // SG-3
  whole_model here(small, 2, 5);
  whole_model there(small, 2, 5, first);
  const auto expected = here.parameters();
  const auto came = there.parameters();
  BOOST_REQUIRE(came.size() == expected.size());
  for (std::size_t i = 0; i < came.size(); ++i) {
    BOOST_TEST((came[i].device() == first));
    BOOST_TEST(at::equal(came[i].cpu(), expected[i]));
  }
  const auto logits = there.forward(some_windows(2).inputs);
  BOOST_TEST((logits.device() == first));
  BOOST_TEST(at::allclose(logits.cpu(), here.forward(some_windows(2).inputs), 1e-4, 1e-5));
}

BOOST_AUTO_TEST_CASE(stages_on_a_device_train_with_compressed_tensors) {  // PI-4
  constexpr model_shape wide{.vocabulary = 11, .blocks = 2, .width = 64, .heads = 2, .context = 16};
  const auto tokens = at::arange(6 * 16, at::kLong).remainder(11).view({6, 16});
  const batch windows{tokens, tokens.remainder(7)};
  const auto loss_after_steps = [&](troupe::wire_format wire) {
    cluster nodes;
    recipe how;
    how.batch = 6;
    how.micro_batches = 3;
    how.wire = wire;
    pipeline trained(nodes.driver, nodes.stages(), wide, how, first.str());
    for (int step = 0; step < 15; ++step) trained.train_step(windows, 1e-3, false);
    double saved = 0;
    for (const auto& each : nodes.one.status().peers)
      saved += static_cast<double>(each.plain_bytes_sent) - static_cast<double>(each.bytes_sent);
    BOOST_TEST((saved > 0) == (wire != troupe::wire_format::exact));
    return trained.evaluate(windows);
  };
  const auto exact = loss_after_steps(troupe::wire_format::exact);
  for (const auto wire : {troupe::wire_format::bfloat16, troupe::wire_format::int8})
    BOOST_TEST(loss_after_steps(wire) == exact, boost::test_tools::tolerance(0.01));
}

BOOST_AUTO_TEST_CASE(stages_on_a_device_train_with_the_bits_of_a_single_process_there) {  // PI-2
  at::set_num_threads(1);
  cluster nodes;
  recipe how;
  how.batch = 6;
  how.micro_batches = 3;
  pipeline trained(nodes.driver, nodes.stages(), small, how, first.str());
  whole_model alone(small, 2, how.seed, first);
  const auto windows = some_windows(6);
  verification verified;
  const auto before = trained.evaluate(windows);
  for (std::int64_t step = 1; step <= 3; ++step) {
    copy_parameters(trained.parameters(), alone);
    const auto result = trained.train_step(windows, 1e-2, true);
    for (const auto& of_stage : result.gradients)
      for (const auto& [name, gradient] : of_stage) BOOST_TEST((gradient.device() == first), name);
    verified.check(alone, windows, trained.micro_batch_sizes(), step, {"one", "two"}, result.gradients);
  }
  BOOST_TEST(verified.steps() == 3);
  BOOST_TEST(trained.evaluate(windows) < before);
}

BOOST_AUTO_TEST_CASE(a_node_without_the_device_says_which_ones_it_has) {
  cluster nodes;
  const auto create = [&] {
    nodes.driver.peer("one").create(stage_type, stage_attributes(small, {0, 2}, 1, "privateuseone:7"));
  };
  BOOST_CHECK_EXCEPTION(create(), troupe::error, [&](const troupe::error& failure) {
    return std::string(failure.what()).find("(cpu, " + first.str() + ", " + second.str() + "), but it is 'privateuseone:7'") !=
           std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
