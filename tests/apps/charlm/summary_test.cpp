// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/summary.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

using namespace troupe::apps::charlm;

BOOST_AUTO_TEST_SUITE(summary_of_a_run)

BOOST_AUTO_TEST_CASE(a_summary_has_what_is_promised) {
  run_summary summary;
  summary.validation_loss = 1.4;
  summary.verified_steps = 3;
  const auto fields = nlohmann::json::parse(summary.to_json(run_state{}));
  for (const char* name : {"validation_loss", "trigram_loss", "tokens_per_second", "single_process_tokens_per_second",
                           "gradients_verified", "seconds", "wire"})
    BOOST_TEST(fields.contains(name), name);
  BOOST_TEST(fields["gradients_verified"] == true);
  BOOST_TEST(fields["wire"] == "exact");
  run_state compressed;
  compressed.how.wire = troupe::wire_format::bfloat16;
  BOOST_TEST(nlohmann::json::parse(summary.to_json(compressed))["wire"] == "bf16");
}

BOOST_AUTO_TEST_CASE(a_summary_has_the_bubble_beside_the_formula) {
  run_summary summary;
  run_state state;
  state.how.order = schedule::one_forward_one_backward;
  summary.most_held = {0, 0};  // dataflow takes no turns, so its stages count nothing
  for (const char* name : {"bubble", "bubble_by_formula", "most_micro_batches_held"})
    BOOST_TEST(nlohmann::json::parse(summary.to_json(state))[name].is_null(), name);
  summary.work = {.forward = 3, .backward = 6, .span = 10};
  summary.most_held = {2, 1};
  const auto fields = nlohmann::json::parse(summary.to_json(state));
  BOOST_TEST(fields["schedule"] == "1f1b");
  BOOST_TEST(fields["bubble"].get<double>() == 0.1, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(fields["bubble_by_formula"] == 1.0 / 13);
  BOOST_TEST((fields["most_micro_batches_held"] == nlohmann::json{2, 1}));
  const auto lines = summary.lines(state, "", {});
  BOOST_TEST(std::count(lines.begin(), lines.end(),
                        "bubble           stages did not work for 10.0 % of a step; by the formula of 1f1b 7.7 %") == 1);
}

BOOST_AUTO_TEST_CASE(a_summary_names_the_files_that_were_written) {
  const auto lines =
    run_summary{}.lines(run_state{}, "some\ntext", {"out/a", {"summary.json", "checkpoint/"}, "troupe generate --out out/a"});
  const auto has = [&](const std::string& line) { return std::find(lines.begin(), lines.end(), line) != lines.end(); };
  for (const char* line : {"  | some", "  | text", "files            out/a/: summary.json, checkpoint/",
                           "more text        troupe generate --out out/a"})
    BOOST_TEST(has(line), line);
}

BOOST_AUTO_TEST_CASE(a_summary_of_verified_steps_alone_claims_no_throughput) {
  run_summary summary;
  summary.single_process = {.tokens_per_second = 1000, .threads = 2};
  const auto throughput = [&] {
    const auto lines = summary.lines(run_state{}, "", {});
    return *std::find_if(lines.begin(), lines.end(), [](const auto& line) { return line.starts_with("throughput"); });
  };
  BOOST_TEST(throughput() ==
             "throughput       not measured, because verified steps do not count and no other step ran; "
             "1,000 with one, libtorch's own engine and 2 threads");
  BOOST_TEST(nlohmann::json::parse(summary.to_json(run_state{}))["tokens_per_second"].is_null());
  summary.tokens_per_second = 1500;
  BOOST_TEST(throughput().ends_with("(ratio 1.50)"), throughput());
  BOOST_TEST(nlohmann::json::parse(summary.to_json(run_state{}))["tokens_per_second"] == 1500);
}

BOOST_AUTO_TEST_SUITE_END()
