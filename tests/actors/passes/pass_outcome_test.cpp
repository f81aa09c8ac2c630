// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/pass_outcome.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>

#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/passes/context_record.hpp>

#include "actors/lone_services.hpp"
#include "actors/temporary_folder.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(outcome_of_a_pass)

namespace {

struct running_pass : test::lone_services {
  explicit running_pass(settings options = named()) : lone_services(false, std::move(options)) { record->begin(true); }

  std::shared_ptr<passes::context_record> record =
    std::make_shared<passes::context_record>(context_id{services.self.id(), 1}, services.self.id(), services.counts);
  future<done> result;
  passes::pass_outcome outcome{services, record, pass_number{1}, result};
};

settings logged_to(const std::string& file) {
  auto options = test::lone_services::named();
  options.log_level = severity::debug;
  options.log_file = file;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(is_success_where_the_thread_that_ran_the_last_burst_is_first) {  // PO-1
  running_pass pass;
  BOOST_TEST(pass.outcome.succeed());
  BOOST_TEST((pass.record->passes().completed == pass_number{1}));
  BOOST_TEST(!pass.outcome.claim());
  BOOST_TEST(!pass.outcome.succeed());
  BOOST_TEST(!pass.result.ready());
  pass.outcome.tell();
  BOOST_TEST(pass.result.ready());
}

BOOST_AUTO_TEST_CASE(is_left_to_the_control_plane_where_that_is_first) {  // PO-1
  running_pass pass;
  BOOST_TEST(pass.outcome.claim());
  BOOST_TEST(pass.outcome.claim());
  BOOST_TEST(!pass.outcome.succeed());
  BOOST_TEST(pass.record->passes().is_running());
  pass.outcome.end(false);
  BOOST_TEST(!pass.record->passes().is_running());
  BOOST_TEST((pass.record->passes().completed == pass_number{}));
}

BOOST_AUTO_TEST_CASE(has_a_line_in_the_log_before_the_user_is_told) {  // PO-2
  for (const bool succeeds : {true, false}) {
    const test::temporary_folder folder;
    {
      running_pass pass(logged_to(folder / "log"));
      pass.result.then(
        [&](const future<done>&) { pass.services.log.debug("test", [] { return std::string("the user is told"); }); });
      succeeds ? pass.outcome.tell() : pass.outcome.fail(error(errc::function_failed, "of a hook"));
      pass.outcome.tell();  // comes too late
    }
    const auto log = test::read_text(folder / "log");
    const auto line = log.find(succeeds ? ": complete after" : "of a hook");
    BOOST_TEST(line != std::string::npos);
    BOOST_TEST(log.find("the user is told") != std::string::npos);
    BOOST_TEST(line < log.find("the user is told"));
    BOOST_TEST((log.find(": complete after") != std::string::npos) == succeeds);
  }
}

BOOST_AUTO_TEST_SUITE_END()
