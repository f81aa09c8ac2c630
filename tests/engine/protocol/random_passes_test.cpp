// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include "engine/protocol/simulated_pass.hpp"

using namespace troupe;

namespace {

constexpr int programs = 20'000;

struct drawn {
  std::mt19937_64 random;
  simulated::graph graph;
  drawn(std::uint64_t seed, double unused) : random(seed) {
    auto nodes = std::uniform_int_distribution<std::size_t>(2, 5)(random);
    auto functions = std::uniform_int_distribution<std::size_t>(1, 24)(random);
    graph = simulated::draw(random, nodes, functions, unused);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(random_passes)

// IN-1, PA-1, PA-2, PA-4
BOOST_AUTO_TEST_CASE(every_function_that_gradients_reach_runs_once_and_no_other) {
  for (int seed = 0; seed < programs; ++seed) {
    drawn program(seed, seed % 2 == 0 ? 0.0 : 0.25);
    simulated::pass run(program.graph, program.random, {});
    BOOST_REQUIRE_MESSAGE(run.run_to_end(), "seed " << seed << ": the pass hangs");
    BOOST_REQUIRE_MESSAGE(!run.lead().result(), "seed " << seed << ": " << run.lead().result()->text);
    auto expected = simulated::reached(program.graph);
    for (std::size_t f = 0; f < run.runs.size(); ++f)
      BOOST_REQUIRE_MESSAGE(run.runs[f] == static_cast<int>(expected.count(f)),
                            "seed " << seed << ": function " << f << " ran " << run.runs[f] << " times");
  }
}

// IN-3
BOOST_AUTO_TEST_CASE(one_discovery_is_enough) {
  std::size_t with_discovery = 0;
  for (int seed = 0; seed < programs; ++seed) {
    drawn program(seed, 0.3);
    simulated::pass run(program.graph, program.random, {});
    BOOST_REQUIRE(run.run_to_end());
    BOOST_REQUIRE_MESSAGE(run.discoveries <= 1, "seed " << seed);
    with_discovery += run.discoveries;
  }
  BOOST_TEST(with_discovery > programs / 4);
}

// IN-2, PA-3
BOOST_AUTO_TEST_CASE(a_pass_ends_whatever_goes_wrong) {
  int failures = 0;
  for (int seed = 0; seed < programs; ++seed) {
    drawn program(seed, seed % 2 == 0 ? 0.0 : 0.25);
    simulated::trouble what;
    if (seed % 4 == 0)
      what.function_throws = program.random() % program.graph.home.size();
    if (seed % 4 == 1 || seed % 8 == 0)
      what.node_dies = 1 + program.random() % (program.graph.nodes - 1);
    what.deadline = seed % 4 == 2;
    simulated::pass run(program.graph, program.random, what);
    BOOST_REQUIRE_MESSAGE(run.run_to_end(), "seed " << seed << ": the pass hangs");
    BOOST_REQUIRE_MESSAGE(run.all_idle(), "seed " << seed << ": a burst is still away");
    failures += run.lead().result() ? 1 : 0;
    for (auto runs : run.runs)
      BOOST_REQUIRE(runs <= 1);
  }
  BOOST_TEST(failures > programs / 4);
}

BOOST_AUTO_TEST_SUITE_END()
