// SPDX-License-Identifier: BSD-3-Clause
// A program that has set a locale with a comma gets the same numbers as any other program.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <troupe/actors/metrics/metrics_text.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/actors/tracing/chrome_trace.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/plain_text.hpp>
#include <troupe/messages/tensor_rules.hpp>

#include "actors/temporary_folder.hpp"
#include "support/comma_locale.hpp"
#include "support/contains.hpp"
#include "support/environment_variable.hpp"
#include "support/metrics_rules.hpp"

namespace numbers_and_locales {

using namespace troupe;
using namespace troupe::test;

BOOST_FIXTURE_TEST_SUITE(with_a_comma_in_the_locale, comma_locale)

BOOST_AUTO_TEST_CASE(a_number_has_the_form_that_it_has_without) {  // XN-1
  BOOST_TEST(fixed_text(1234567.891, 2) == "1234567.89");
  BOOST_TEST(fixed_text(-0.5, 0) == "-0");
  BOOST_TEST(number_text(0.25) == "0.25");
  BOOST_TEST(number_text(12345.5, 10) == "12345.5");
  BOOST_TEST(number_text(1e-5) == "1e-05");
  classic_ostringstream text;
  text << 12345 << ' ' << 1.5 << ' ' << at::IntArrayRef({1000, 2});
  BOOST_TEST(text.str() == "12345 1.5 [1000, 2]");
}

BOOST_AUTO_TEST_CASE(metrics_follow_the_rules_of_prometheus) {  // XN-1, PT-1
  node_status status;
  status.self.name = "stage1";
  status.uptime_ns = 1'234'500'000'000;
  const auto page = metrics::metrics_text(status);
  for (const auto& problem : problems_of_metrics(page)) BOOST_ERROR(problem);
  BOOST_TEST(contains(page, "\ntroupe_uptime_seconds 1234.500\n"), page);
}

BOOST_AUTO_TEST_CASE(texts_of_the_log_and_of_errors_have_points) {  // XN-1
  BOOST_TEST(support::duration_text(1'500'000) == "1.500 ms");
  BOOST_TEST(support::seconds_text(std::chrono::milliseconds(1'250)) == "1.25 s");
  BOOST_TEST(contains(describe(at::empty({1000, 2})), "1000"));
  BOOST_TEST(contains(text_of<error>([] { objects::check_learning_rate(-0.5); }), "is -0.5,"));
}

BOOST_AUTO_TEST_CASE(what_is_written_can_be_read) {  // XN-1
  const temporary_folder folder;
  const attributes about{{"rate", 0.1}, {"steps", 123456}, {"rates", std::vector{0.5, 1e300}}};
  objects::write_manifest(folder.path(), {objects::new_save_id(), {}, about});
  BOOST_TEST((objects::read_manifest(folder.path()).about == about));
  const auto trace = tracing::chrome_trace({{"driver", 0, {{"step", "test", 1'500, 4'000'500, {}}}}});
  BOOST_TEST(contains(trace, "\"dur\":3999.0"), trace);
  BOOST_TEST(nlohmann::json::accept(trace));
  const environment_variable limit("TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT", "0.25");
  BOOST_TEST(stop_limit_of_environment().count() == 250);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace numbers_and_locales
