// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/broker_notes.hpp>

#include <cstdint>
#include <string>

#include <boost/test/unit_test.hpp>

#include <caf/node_id.hpp>

BOOST_AUTO_TEST_SUITE(notes_of_the_broker)

namespace {

using troupe::network::broker_notes;

caf::node_id node_of(std::uint32_t process) {
  caf::node_id::default_data::host_id_type host{};
  host.fill(1);
  return caf::make_node_id(process, host);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_node_has_a_bounded_number_of_actors) {  // BN-1
  broker_notes notes;
  BOOST_TEST(notes.count({}, broker_notes::most_actors, 0) == "");
  BOOST_TEST(notes.count({}, broker_notes::most_actors + 1, 0) == "messages of more than 131072 actors");
}

BOOST_AUTO_TEST_CASE(a_connection_names_a_bounded_number_of_strangers) {  // BN-2
  broker_notes notes;
  for (std::uint32_t i = 1; i <= broker_notes::most_strangers; ++i) BOOST_TEST_REQUIRE(notes.count({node_of(i)}, 0, 0) == "");
  BOOST_TEST(notes.count({node_of(1), node_of(7)}, 0, 0) == "");  // once more
  BOOST_TEST(notes.count({node_of(broker_notes::most_strangers + 1)}, 0, 0) ==
             "the names of more than 1024 nodes that are not connected with this one");
}

BOOST_AUTO_TEST_CASE(who_asks_reads_the_answers) {  // BN-3
  constexpr auto half = broker_notes::most_owed / 2;
  broker_notes notes;
  for (int i = 0; i < 10; ++i) {
    BOOST_TEST(notes.count({}, 0, half) == "");
    BOOST_TEST(notes.count({}, 0, half) == "");
    i % 2 == 0 ? notes.left(2 * half, false) : notes.left(1, true);
  }
  BOOST_TEST(notes.count({}, 0, 2 * half) == "");
  notes.left(half, false);
  BOOST_TEST(notes.count({}, 0, half) == "");
  BOOST_TEST(notes.count({}, 0, 1) == "questions whose answers it does not read");
}

BOOST_AUTO_TEST_SUITE_END()
