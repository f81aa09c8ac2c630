// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/read_errors.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <caf/message_id.hpp>

#include <troupe/messages/caf_error.hpp>

#include "samples.hpp"

using namespace troupe;

BOOST_AUTO_TEST_CASE(why_a_message_could_not_be_read_is_kept_until_it_is_taken) {
  while (take_read_error()) continue;  // those of other cases
  hello greeting;
  BOOST_TEST(static_cast<bool>(testing::decode({'x'}, greeting)));
  BOOST_TEST(caf::to_string(take_read_error()).find("Hello: cut off after 1 bytes") != std::string::npos);
  BOOST_TEST(!take_read_error());
}

BOOST_AUTO_TEST_CASE(each_message_has_its_own_error_until_that_is_taken) {  // UM-1
  const auto read = [](message_key which, auto&& into, const std::vector<char>& bytes) {
    const reading_from message(nullptr, which);
    BOOST_TEST(static_cast<bool>(testing::decode(bytes, into)));
  };
  read({1, 5}, hello(), {'x'});
  read({1, 6}, farewell(), {'x'});
  read({2, 5}, hello(), {'x', 'y'});
  BOOST_TEST(caf::to_string(take_read_error({2, 5})).find("Hello: cut off after 2 bytes") != std::string::npos);
  BOOST_TEST(caf::to_string(take_read_error({1, 5})).find("Hello: cut off after 1 bytes") != std::string::npos);
  BOOST_TEST(!take_read_error({1, 5}));
  BOOST_TEST(caf::to_string(take_read_error({1, 6})).find("Farewell: cut off after 1 bytes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(errors_that_nobody_takes_are_bounded_and_those_of_answers_are_not_kept) {  // UM-2
  hello into;
  const auto answer = caf::make_message_id(7).response_id().integer_value();
  for (const auto number : {answer, std::uint64_t{7}}) {
    const reading_from message(nullptr, {1, number});
    testing::decode({'x'}, into);
  }
  BOOST_TEST(!take_read_error({1, answer}));
  for (std::size_t i = 1; i < most_read_errors; ++i) keep_read_error(make_error(errc::malformed_message, "another"));
  BOOST_TEST(static_cast<bool>(take_read_error({1, 7})));
  {
    const reading_from message(nullptr, {1, 7});
    testing::decode({'x'}, into);
  }
  keep_read_error(make_error(errc::malformed_message, "another"));
  for (std::size_t i = 1; i < most_read_errors; ++i) BOOST_TEST_REQUIRE(static_cast<bool>(take_read_error()));
  BOOST_TEST(static_cast<bool>(take_read_error({1, 7})));
}
