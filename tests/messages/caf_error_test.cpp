// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>

#include <troupe/messages/caf_error.hpp>

using namespace troupe;

namespace {

void check(const caf::error& from, errc code, const std::string& part) {
  error seen = to_exception(from);
  BOOST_TEST(static_cast<int>(seen.code()) == static_cast<int>(code));
  BOOST_TEST(std::string(seen.what()).find(part) != std::string::npos, "'" << seen.what() << "' lacks '" << part << "'");
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_error_of_ours_comes_back_with_code_and_text) {
  for (unsigned code = 1; code <= static_cast<unsigned>(errc::misuse); ++code)
    check(make_error(static_cast<errc>(code), "stage1: no"), static_cast<errc>(code), "stage1: no");
  BOOST_TEST(to_exception(make_error(errc::refused, "no")).what() == std::string("no"));
}

BOOST_AUTO_TEST_CASE(an_error_without_text_gets_that_of_its_code) {
  check(caf::error{errc::stopping}, errc::stopping, to_text(errc::stopping));
  check(make_error(errc::stopping, ""), errc::stopping, to_text(errc::stopping));
}

BOOST_AUTO_TEST_CASE(where_it_happened_goes_before_the_text) {
  BOOST_TEST(to_exception(make_error(errc::refused, "no"), "stage1").what() == std::string("stage1: no"));
}

BOOST_AUTO_TEST_CASE(errors_of_caf_are_told_by_what_they_mean) {
  check(caf::sec::request_timeout, errc::deadline_passed, "request_timeout");
  check(caf::sec::request_receiver_down, errc::peer_down, "request_receiver_down");
  check(caf::sec::cannot_connect_to_node, errc::peer_down, "cannot_connect_to_node");
  check(caf::sec::unexpected_message, errc::malformed_message, "unexpected_message");
  check(caf::sec::runtime_error, errc::function_failed, "runtime_error");
  check(caf::make_error(caf::sec::cannot_open_port, std::string("port 80")), errc::misuse, "port 80");
  check(caf::exit_reason::kill, errc::peer_down, "kill");
  check(caf::error{3, caf::atom("theirs")}, errc::function_failed, "theirs");
}

BOOST_AUTO_TEST_CASE(an_error_without_a_code_keeps_its_text) {
  check(make_error(errc::none, "the feed is 3 h old"), errc::function_failed, "the feed is 3 h old");
}

BOOST_AUTO_TEST_CASE(no_error_is_told_as_none) { check(caf::error{}, errc::none, to_text(errc::none)); }

BOOST_AUTO_TEST_CASE(what_a_handler_caught_becomes_an_error_between_actors) {
  check(make_error(error{errc::invalid_gradient, "shape"}, "stage1"), errc::invalid_gradient, "stage1: shape");
  check(make_error(std::runtime_error{"broken"}), errc::function_failed, "broken");
}
