// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/contracts/jobs.hpp>

#include <boost/test/unit_test.hpp>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(jobs_of_a_node)

namespace {

bool says(const error& failed, errc code, const std::string& part) {
  BOOST_TEST_INFO(failed.what());
  return failed.code() == code && std::string(failed.what()).find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_call_that_is_dropped_unanswered_fails) {
  auto job = std::make_shared<contracts::outgoing_call>();
  job->label = "f";
  auto reply = job->reply;
  job.reset();
  BOOST_CHECK_EXCEPTION(reply.get(), error,
                        [](const error& failed) { return says(failed, errc::stopping, "call of 'f' failed"); });
}

BOOST_AUTO_TEST_CASE(a_wish_for_gradients_that_is_dropped_fails) {
  auto wish = std::make_shared<contracts::gradients_wish>();
  auto result = wish->result;
  wish.reset();
  BOOST_CHECK_EXCEPTION(result.get(), error, [](const error& failed) { return says(failed, errc::stopping, "was released"); });
}

BOOST_AUTO_TEST_CASE(why_tensors_were_not_copied_keeps_a_code_that_is_known) {
  const std::vector<c10::Device> there{{c10::kCUDA, 1}, {c10::kCPU}, {c10::kCUDA, 0}, {c10::kCUDA, 1}};
  const auto known = contracts::not_copied(std::make_exception_ptr(error(errc::stopping, "too late")), there);
  BOOST_TEST(says(known, errc::stopping, "cuda:0, cuda:1, could not be made ready to leave: too late"));
  const auto other = contracts::not_copied(std::make_exception_ptr(std::runtime_error("broken")), there);
  BOOST_TEST(says(other, errc::function_failed, "broken"));
}

BOOST_AUTO_TEST_SUITE_END()
