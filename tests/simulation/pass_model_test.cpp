// SPDX-License-Identifier: BSD-3-Clause
#include "simulation/pass_model.hpp"

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::simulation;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// A pass over a shape, all of whose nodes are connected.
struct simulated_pass {
  event_queue clock;
  simulated_network network;
  std::shared_ptr<pass_model> pass;
  std::set<std::pair<std::uint32_t, std::uint32_t>> down;  // who does not reach whom
  int ends = 0;

  simulated_pass(pass_shape shape, network_costs costs, pass_model::terms how = {}, std::uint64_t seed = 1)
      : network(clock, shape.nodes, costs, seed) {
    for (std::size_t a = 0; a < shape.nodes; ++a)
      for (std::size_t b = a + 1; b < shape.nodes; ++b) network.connect(a, b);
    how.checks_weight = shape.nodes < 20;
    how.reaches = [this](auto from, auto to) { return !down.contains({from, to}); };
    pass = std::make_shared<pass_model>(network, std::make_shared<const pass_shape>(std::move(shape)), how);
  }
  void start() {
    pass->start([this](const auto&) { ++ends; });
  }
  /// Lets events happen and checks the promises after each.
  void run(std::int64_t until_ns = event_queue::for_ever) {
    while (clock.step(until_ns)) BOOST_TEST_REQUIRE(pass->wrong() == "");
  }
  void end(std::uint32_t who) {
    network.end(who);
    pass->process_ended(who);
    for (std::uint32_t n = 0; n < pass->shape().nodes; ++n) {
      if (n == who) continue;
      down.insert({n, who});
      pass->peer_down(n, who);
    }
  }
  void expect_success() {
    BOOST_TEST_REQUIRE(pass->is_over());
    BOOST_TEST(pass->result().succeeded, pass->result().error);
    BOOST_TEST(ends == 1);
  }
};

const network_costs in_a_rack{.latency_ns = 10'000, .jitter_ns = 20'000};

}  // namespace

BOOST_AUTO_TEST_SUITE(pass_model_on_a_simulated_network)

BOOST_AUTO_TEST_CASE(passes_over_all_shapes_succeed) {  // IN-1, PA-1, WG-1
  for (const auto& name : shape_names())
    for (const std::uint32_t nodes : {2u, 5u, 12u}) {
      simulated_pass all(shape_of(name, nodes), in_a_rack);
      all.start();
      all.run();
      all.expect_success();
    }
}

BOOST_AUTO_TEST_CASE(the_time_of_a_ring_is_that_of_its_functions_and_messages) {
  simulated_pass all(ring_shape(4), {.latency_ns = 1000}, {.costs = {.function_ns = 10'000, .spread_percent = 0}});
  all.start();
  all.run();
  all.expect_success();
  // Five functions and four messages. All weight comes to the initiator with the last gradients or before.
  BOOST_TEST(all.pass->result().time_ns == 5 * 10'000 + 4 * 1000);
}

BOOST_AUTO_TEST_CASE(one_seed_gives_one_run) {  // PM-1
  const auto run = [](std::uint64_t seed) {
    simulated_pass all(tree_shape(50), network_costs::one_rack(), {}, seed);
    all.start();
    all.run();
    return std::tuple(all.clock.happened(), all.pass->result().time_ns, all.pass->result().largest_weight_bytes,
                      all.network.counts(0).bytes_received);
  };
  BOOST_TEST((run(7) == run(7)));
  BOOST_TEST((run(7) != run(8)));
}

BOOST_AUTO_TEST_CASE(drawn_passes_with_unused_results_succeed_in_smart_mode_and_fail_in_fast_mode) {  // IN-3, IN-4
  std::mt19937_64 random(5);
  int unused = 0;
  for (int i = 0; i < 300; ++i) {
    const auto shape = draw_shape(random, 2 + static_cast<std::uint32_t>(i % 5), 12, 4);
    for (const bool fast : {false, true}) {
      simulated_pass all(shape, in_a_rack, {.fast = fast}, static_cast<std::uint64_t>(i));
      all.start();
      all.run();
      BOOST_TEST_REQUIRE(all.pass->is_over());
      BOOST_TEST(all.ends == 1);
      if (!fast) all.expect_success();
      if (fast && !all.pass->result().succeeded) BOOST_TEST((all.pass->result().code == errc::misuse));
      unused += fast && !all.pass->result().succeeded;
    }
  }
  BOOST_TEST(unused > 30);
}

BOOST_AUTO_TEST_CASE(a_function_that_throws_fails_the_pass_on_all_nodes) {  // IN-2, PA-3
  const auto shape = pipeline_shape(5);
  for (std::uint32_t f = 0; f < shape.home.size(); ++f) {
    simulated_pass all(shape, in_a_rack, {.throwing = f});
    all.start();
    all.run(500 * ms);
    BOOST_TEST_REQUIRE(all.pass->is_over());
    BOOST_TEST((all.pass->result().code == errc::function_failed));
    for (std::uint32_t n = 0; n < 5; ++n) BOOST_TEST(!all.pass->holds_participant(n));
  }
}

BOOST_AUTO_TEST_CASE(a_node_that_ends_at_any_time_fails_the_pass_or_comes_too_late) {
  int failed = 0;
  for (std::int64_t at_us = 5; at_us < 1200; at_us += 25) {
    simulated_pass all(tree_shape(6, 2), in_a_rack, {.costs = {.function_ns = 50'000, .spread_percent = 0}});
    all.start();
    all.run(at_us * 1000);
    all.end(3);
    all.run(5000 * ms);
    BOOST_TEST_REQUIRE(all.pass->is_over());
    BOOST_TEST(all.ends == 1);
    if (!all.pass->result().succeeded) BOOST_TEST((all.pass->result().code == errc::peer_down));
    failed += !all.pass->result().succeeded;
    all.pass->release();
    all.run(6000 * ms);
    for (std::uint32_t n = 0; n < 6; ++n) BOOST_TEST(!all.pass->holds_participant(n));
  }
  BOOST_TEST(failed > 10);
}

BOOST_AUTO_TEST_CASE(a_lost_message_ends_the_pass_by_its_deadline) {
  simulated_pass all(pipeline_shape(4), {.latency_ns = 1000}, {.deadline_ns = 300 * ms});
  all.network.lose_what_is_cut();
  all.network.cut_way(1, 2);
  all.start();
  all.run(100 * ms);
  BOOST_TEST(!all.pass->is_over());
  all.run(301 * ms);
  BOOST_TEST_REQUIRE(all.pass->is_over());
  BOOST_TEST((all.pass->result().code == errc::deadline_passed));
}

BOOST_AUTO_TEST_CASE(an_abort_without_an_answer_ends_after_a_second) {  // IN-2
  simulated_pass all(pipeline_shape(4), {.latency_ns = 1000}, {.deadline_ns = 300 * ms});
  all.network.cut_way(2, 3);
  all.network.cut_way(0, 3);
  all.start();
  all.run(1200 * ms);
  BOOST_TEST(!all.pass->is_over());
  all.run(1301 * ms);
  BOOST_TEST_REQUIRE(all.pass->is_over());
  BOOST_TEST((all.pass->result().code == errc::deadline_passed));
}

BOOST_AUTO_TEST_CASE(a_message_holds_the_weight_that_it_has) {
  simulated_pass small(tree_shape(10), in_a_rack);
  simulated_pass large(tree_shape(200), in_a_rack);
  for (auto* each : {&small, &large}) {
    each->start();
    each->run();
    each->expect_success();
    BOOST_TEST(each->pass->result().largest_weight_bytes > 10u);
    BOOST_TEST(each->network.counts(0).sent > 0u);
  }
  // Subtrees report together: the initiator hears no more of 200 nodes than of 10.
  BOOST_TEST(large.network.counts(0).received <= small.network.counts(0).received + 1);
}

BOOST_AUTO_TEST_SUITE_END()
