// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/open_requests.hpp>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_CASE(requests_are_known_by_node_until_they_are_answered_or_taken) {
  troupe::support::open_requests asked;
  const auto request = [](std::uint64_t number) { return caf::make_message_id(number); };
  asked.add(troupe::node_id{1}, request(11));
  asked.add(troupe::node_id{1}, request(12));
  asked.add(troupe::node_id{2}, request(13));
  asked.answered(troupe::node_id{1}, request(11));
  BOOST_TEST((asked.take(troupe::node_id{1}) == std::set<caf::message_id>{request(12)}));
  BOOST_TEST(asked.take(troupe::node_id{1}).empty());
  asked.answered(troupe::node_id{1}, request(12));  // the error that ends the request comes after take()
  BOOST_TEST(!asked.empty());
  asked.answered(troupe::node_id{2}, request(13));
  BOOST_TEST(asked.empty());
}
