// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/part_buffer.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(parts_of_a_connection)

namespace {

using caf::io::receive_policy;
using troupe::network::part_buffer;
using state = part_buffer::state;

/// Reads bytes into the buffer, as a connection does that the wire brings them by. Returns how many there was space for.
std::size_t read_into(part_buffer& parts, const std::string& bytes) {
  const auto space = parts.space();
  const auto ahead = parts.space_ahead();
  const auto first = std::min(bytes.size(), space.iov_len);
  const auto second = std::min(bytes.size() - first, ahead.iov_len);
  std::memcpy(space.iov_base, bytes.data(), first);
  std::memcpy(ahead.iov_base, bytes.data() + first, second);
  parts.add(first + second);
  return first + second;
}

std::string take_from(part_buffer& parts) {
  const auto bytes = parts.take();
  return {parts.part().data(), bytes};
}

part_buffer that_wants(receive_policy::config wanted) {
  part_buffer result;
  result.wish(wanted);
  result.want_next();
  return result;
}

}  // namespace

// BU-1
BOOST_AUTO_TEST_CASE(what_comes_beyond_a_part_begins_the_next_ones) {
  auto parts = that_wants(receive_policy::exactly(4));
  BOOST_TEST((parts.now() == state::filling));
  read_into(parts, "ab");
  BOOST_TEST((parts.now() == state::filling));
  read_into(parts, "cdefghij");
  BOOST_TEST((parts.now() == state::complete));
  BOOST_TEST(take_from(parts) == "abcd");
  for (const auto* next : {"efgh", "ij"}) {
    BOOST_TEST(parts.has_ahead());
    parts.want_next();
    BOOST_TEST(parts.is_empty());
    parts.add_ahead();
    BOOST_TEST((parts.now() == (std::strlen(next) == 4 ? state::complete : state::filling)));
    if (parts.now() == state::complete) BOOST_TEST(take_from(parts) == next);
  }
  BOOST_TEST(!parts.has_ahead());
  read_into(parts, "kl");
  BOOST_TEST(take_from(parts) == "ijkl");
}

// BU-1
BOOST_AUTO_TEST_CASE(a_part_is_complete_with_the_bytes_that_the_broker_wants_at_least) {
  for (const auto& wanted : {receive_policy::at_most(4), receive_policy::at_least(4)}) {
    auto parts = that_wants(wanted);
    const bool is_enough = wanted.first == caf::io::receive_policy_flag::at_most;
    read_into(parts, "a");
    BOOST_TEST((parts.now() == (is_enough ? state::complete : state::filling)));
    read_into(parts, "bcdef");
    BOOST_TEST(take_from(parts) == (is_enough ? "abcd" : "abcdef"));
  }
}

// BU-1: a part whose first bytes were there before, as that of a message in fragments.
BOOST_AUTO_TEST_CASE(a_part_may_begin_with_bytes_that_are_there) {
  auto parts = that_wants(receive_policy::exactly(1));
  parts.part().assign({'a', 'b', 0, 0});
  parts.want_rest(2);
  BOOST_TEST((parts.now() == state::filling));
  read_into(parts, "cde");
  BOOST_TEST((parts.now() == state::complete));
  BOOST_TEST(take_from(parts) == "abcd");
  BOOST_TEST(parts.has_ahead());
}

// BU-2
BOOST_AUTO_TEST_CASE(what_is_wanted_takes_memory_as_it_comes) {
  constexpr std::size_t large = std::size_t{1} << 30;
  auto parts = that_wants(receive_policy::exactly(large));
  BOOST_TEST(parts.wished() == large);
  BOOST_TEST(parts.part().size() == part_buffer::first_capacity);
  BOOST_TEST(parts.part().capacity() <= part_buffer::most_reserved);
  parts.add(part_buffer::first_capacity);
  BOOST_TEST((parts.now() == state::full));
  parts.grow();
  BOOST_TEST((parts.now() == state::filling));
  BOOST_TEST(parts.part().size() == 2 * part_buffer::first_capacity);
}

// BU-3
BOOST_AUTO_TEST_CASE(memory_of_a_large_part_is_freed_after_many_small_ones) {
  constexpr std::size_t large = std::size_t{1} << 20;
  auto parts = that_wants(receive_policy::exactly(large));
  parts.wish(receive_policy::exactly(10));
  parts.want_next();
  BOOST_TEST(parts.part().capacity() >= large);
  for (int i = 0; i < 2 * troupe::support::recent_peak::window; ++i) parts.want_next();
  BOOST_TEST(parts.part().capacity() <= 2 * part_buffer::kept_bytes);
}

BOOST_AUTO_TEST_SUITE_END()
