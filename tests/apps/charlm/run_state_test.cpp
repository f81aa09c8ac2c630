// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_state.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::test::says;

BOOST_AUTO_TEST_SUITE(state_of_a_run)

BOOST_AUTO_TEST_CASE(a_state_comes_back_from_its_attributes) {
  run_state state;
  state.run = "0123456789abcdef";
  state.shape.vocabulary = 86;
  state.how.learning_rate = 1.0 / 3;
  state.characters = "\n\xE2\x82\xAC";
  state.step = 12;
  state.seconds = 1.5;
  state.planned_seconds = 6;
  state.nodes = "stage1,stage2";
  state.how.wire = troupe::wire_format::int8;
  const auto again = run_state::from_attributes(state.to_attributes(), "here");
  BOOST_TEST((again.to_attributes() == state.to_attributes()));
  BOOST_TEST(again.fraction() == 0.25);
  BOOST_TEST((again.how.wire == troupe::wire_format::int8));
  auto before_wire_formats = state.to_attributes();
  before_wire_formats.erase("wire");
  BOOST_TEST((run_state::from_attributes(before_wire_formats, "here").how.wire == troupe::wire_format::exact));
  auto of_a_later_version = state.to_attributes();
  of_a_later_version["wire"] = "int1";
  BOOST_CHECK_EXCEPTION(run_state::from_attributes(of_a_later_version, "here"), std::runtime_error, says({"here", "'int1'"}));
  state.how.order = schedule::zero_bubble;
  BOOST_TEST((run_state::from_attributes(state.to_attributes(), "here").how.order == schedule::zero_bubble));
  of_a_later_version = state.to_attributes();
  of_a_later_version["schedule"] = "none";
  BOOST_CHECK_EXCEPTION(run_state::from_attributes(of_a_later_version, "here"), std::runtime_error, says({"here", "'none'"}));
  auto before_schedules = state.to_attributes();
  before_schedules.erase("schedule");
  BOOST_TEST((run_state::from_attributes(before_schedules, "here").how.order == recipe{}.order));
  auto before_runs_had_names = state.to_attributes();
  before_runs_had_names.erase("run");
  BOOST_TEST(run_state::from_attributes(before_runs_had_names, "here").run.size() == 16u);
  BOOST_CHECK_EXCEPTION(run_state::from_attributes({}, "here"), std::runtime_error, says({"here", "another program"}));
}

// A checkpoint of an older version, with the option `contexts`, sums gradients as dataflow does only with a context for each
// micro-batch.
BOOST_AUTO_TEST_CASE(a_run_with_sums_in_another_order_does_not_go_on) {
  run_state state;
  state.run = "0123456789abcdef";
  state.how.micro_batches = 12;
  auto values = state.to_attributes();
  BOOST_TEST((run_state::to_continue(values, "here").to_attributes() == values));
  values.erase("schedule");
  for (const std::int64_t contexts : {1, 2, 11}) {
    values["contexts"] = contexts;
    BOOST_CHECK_EXCEPTION(run_state::to_continue(values, "here"), std::runtime_error,
                          says({"expected", "12 micro-batches", "here", std::to_string(contexts) + " context", "--out"}));
    BOOST_TEST(run_state::from_attributes(values, "here").how.micro_batches == 12);  // its model can be used
  }
  for (const std::int64_t contexts : {12, 13}) {
    values["contexts"] = contexts;
    BOOST_CHECK_NO_THROW(run_state::to_continue(values, "here"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
