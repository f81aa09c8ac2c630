// SPDX-License-Identifier: BSD-3-Clause
#include "simulation/pass_model.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

using namespace troupe::simulation;

namespace {

/// Edges lead to higher numbers (PQ-1), roots are on node 0, and gradients reach every function.
void check_shape(const pass_shape& shape) {
  const auto what = shape.name + " of " + std::to_string(shape.nodes);
  for (pass_shape::number f = 0; f < shape.home.size(); ++f)
    for (const auto& each : shape.next[f]) {
      BOOST_TEST_REQUIRE(each.to > f, what);
      BOOST_TEST_REQUIRE((each.send == pass_shape::none) == (shape.home[f] == shape.home[each.to]), what);
      if (each.send != pass_shape::none) BOOST_TEST_REQUIRE(shape.sends[each.send].node == shape.home[each.to], what);
    }
  for (const auto root : shape.roots) BOOST_TEST(shape.home[root] == 0u, what);
  const auto reached = shape.reached();
  BOOST_TEST(std::count(reached.begin(), reached.end(), false) == 0, what);
  BOOST_TEST(!shape.has_unused(), what);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pass_shape_over_nodes)

BOOST_AUTO_TEST_CASE(all_shapes_reach_all_nodes) {  // PQ-1
  for (const auto& name : shape_names())
    for (const pass_shape::number nodes : {2u, 3u, 9u, 10u, 100u}) {
      const auto shape = shape_of(name, nodes);
      BOOST_TEST(shape.name == name);
      BOOST_TEST(shape.nodes == nodes);
      check_shape(shape);
      auto homes = shape.home;
      std::sort(homes.begin(), homes.end());
      BOOST_TEST(static_cast<std::size_t>(std::unique(homes.begin(), homes.end()) - homes.begin()) == nodes);
    }
}

BOOST_AUTO_TEST_CASE(shapes_have_as_many_messages_as_they_should) {
  BOOST_TEST(pipeline_shape(10).sends.size() == 2 * 9u);
  BOOST_TEST(tree_shape(100).sends.size() == 2 * 99u);
  BOOST_TEST(parameter_server_shape(10).sends.size() == 2 * 9u);
  BOOST_TEST(ring_shape(10).sends.size() == 10u);
  BOOST_TEST(all_to_all_shape(10).sends.size() == 9u + 2 * 9 * 8u + 9u);
}

BOOST_AUTO_TEST_CASE(no_node_of_a_tree_has_more_than_its_fan_of_children) {
  for (const auto& sends : tree_shape(1000, 4).sends_of_nodes()) BOOST_TEST(sends.size() <= 5u);
}

BOOST_AUTO_TEST_CASE(a_function_waits_for_what_its_node_plans) {
  pass_shape shape;
  const auto loss = shape.function(0);
  const auto other = shape.function(1);
  const auto same = shape.function(1);
  shape.connect(loss, other);
  shape.connect(other, same);
  shape.unused(same);
  shape.roots = {loss};
  BOOST_TEST(shape.owed() == (std::vector<pass_shape::number>{1, 1, 2}), boost::test_tools::per_element());
  BOOST_TEST(shape.has_unused());
}

BOOST_AUTO_TEST_CASE(a_drawn_shape_has_unused_sends_if_asked) {
  std::mt19937_64 random(1);
  bool any = false;
  for (int i = 0; i < 100; ++i) {
    BOOST_TEST(!draw_shape(random, 4, 10, 0).has_unused());
    any = any || draw_shape(random, 4, 10, 4).has_unused();
  }
  BOOST_TEST(any);
}

BOOST_AUTO_TEST_CASE(an_unknown_shape_is_refused_with_the_names_of_all) {
  BOOST_CHECK_EXCEPTION(shape_of("star", 3), std::invalid_argument, [](const auto& why) {
    return std::string(why.what()) == "there is no shape 'star'; there are pipeline tree parameter_server all_to_all ring";
  });
  BOOST_CHECK_THROW(shape_of("tree", 1), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
