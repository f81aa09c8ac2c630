// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_head.hpp>

#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/io/basp/header.hpp>

#include "actors/lone_services.hpp"

using caf::io::basp::header;
using caf::io::basp::message_type;
using troupe::network::message_head;

BOOST_AUTO_TEST_SUITE(message_heads)

namespace {

struct fixture : troupe::test::lone_services {
  std::vector<char> bytes_of(const header& of) {
    std::vector<char> result;
    caf::binary_serializer sink{system, result};
    BOOST_REQUIRE(!sink(const_cast<header&>(of)));
    return result;
  }
  header read_by_caf(const std::vector<char>& bytes) {
    header result;
    caf::binary_deserializer source{system, bytes};
    BOOST_REQUIRE(!source(result));
    return result;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_header_of_caf_is_read, fixture) {
  const auto bytes = bytes_of({message_type::direct_message, header::named_receiver_flag, 0x01020304, 77, 0x0506070809, 5});
  BOOST_REQUIRE(bytes.size() == message_head::bytes);
  const auto head = message_head::read(bytes.data());
  BOOST_TEST(head.operation == static_cast<int>(message_type::direct_message));
  BOOST_TEST(head.note == 0);
  BOOST_TEST(head.payload == 0x01020304U);
  BOOST_TEST(head.message == 77U);
  BOOST_TEST(head.source == 0x0506070809U);
  BOOST_TEST(head.target == 5U);
}

BOOST_FIXTURE_TEST_CASE(caf_ignores_the_note, fixture) {
  const header sent{message_type::direct_message, 0, 9, 8, 7, 6};
  auto bytes = bytes_of(sent);
  message_head::set_note(bytes.data(), message_head::reads_fragments | message_head::follows_fragments);
  BOOST_TEST(message_head::read(bytes.data()).note == 3);
  BOOST_TEST((read_by_caf(bytes) == sent));
}

BOOST_FIXTURE_TEST_CASE(caf_has_no_operation_of_the_number_of_a_fragment, fixture) {
  std::vector<char> bytes(message_head::bytes);
  message_head{message_head::fragment, 0, 5, 0}.write(bytes.data());
  const auto read = message_head::read(bytes.data());
  BOOST_TEST(read.operation == message_head::fragment);
  BOOST_TEST(read.payload == 5U);
  BOOST_TEST(!caf::io::basp::valid(read_by_caf(bytes)));
}

BOOST_AUTO_TEST_SUITE_END()
