// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/chunk_buffer.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(chunks_of_a_connection)

namespace {

using caf::io::receive_policy;
using troupe::network::chunk_buffer;
using state = chunk_buffer::state;

/// Reads bytes into the buffer, as a connection does that the wire brings them by. Returns how many there was space for.
std::size_t read_into(chunk_buffer& chunks, const std::string& bytes) {
  const auto space = chunks.space();
  const auto ahead = chunks.space_ahead();
  const auto first = std::min(bytes.size(), space.iov_len);
  const auto second = std::min(bytes.size() - first, ahead.iov_len);
  std::memcpy(space.iov_base, bytes.data(), first);
  std::memcpy(ahead.iov_base, bytes.data() + first, second);
  chunks.add(first + second);
  return first + second;
}

std::string take_from(chunk_buffer& chunks) {
  const auto bytes = chunks.take();
  return {chunks.chunk().data(), bytes};
}

chunk_buffer that_wants(receive_policy::config wanted) {
  chunk_buffer result;
  result.wish(wanted);
  result.want_next();
  return result;
}

}  // namespace

// BU-1
BOOST_AUTO_TEST_CASE(what_comes_beyond_a_chunk_begins_the_next_ones) {
  auto chunks = that_wants(receive_policy::exactly(4));
  BOOST_TEST((chunks.now() == state::filling));
  read_into(chunks, "ab");
  BOOST_TEST((chunks.now() == state::filling));
  read_into(chunks, "cdefghij");
  BOOST_TEST((chunks.now() == state::complete));
  BOOST_TEST(take_from(chunks) == "abcd");
  for (const auto* next : {"efgh", "ij"}) {
    BOOST_TEST(chunks.has_ahead());
    chunks.want_next();
    BOOST_TEST(chunks.is_empty());
    chunks.add_ahead();
    BOOST_TEST((chunks.now() == (std::strlen(next) == 4 ? state::complete : state::filling)));
    if (chunks.now() == state::complete) BOOST_TEST(take_from(chunks) == next);
  }
  BOOST_TEST(!chunks.has_ahead());
  read_into(chunks, "kl");
  BOOST_TEST(take_from(chunks) == "ijkl");
}

// BU-1
BOOST_AUTO_TEST_CASE(a_chunk_is_complete_with_the_bytes_that_the_broker_wants_at_least) {
  for (const auto& wanted : {receive_policy::at_most(4), receive_policy::at_least(4)}) {
    auto chunks = that_wants(wanted);
    const bool is_enough = wanted.first == caf::io::receive_policy_flag::at_most;
    read_into(chunks, "a");
    BOOST_TEST((chunks.now() == (is_enough ? state::complete : state::filling)));
    read_into(chunks, "bcdef");
    BOOST_TEST(take_from(chunks) == (is_enough ? "abcd" : "abcdef"));
  }
}

// BU-1: a chunk whose first bytes were there before, as that of a message in fragments.
BOOST_AUTO_TEST_CASE(a_chunk_may_begin_with_bytes_that_are_there) {
  auto chunks = that_wants(receive_policy::exactly(1));
  chunks.chunk().assign({'a', 'b', 0, 0});
  chunks.want_rest(2);
  BOOST_TEST((chunks.now() == state::filling));
  read_into(chunks, "cde");
  BOOST_TEST((chunks.now() == state::complete));
  BOOST_TEST(take_from(chunks) == "abcd");
  BOOST_TEST(chunks.has_ahead());
}

// BU-2
BOOST_AUTO_TEST_CASE(what_is_wanted_takes_memory_as_it_comes) {
  constexpr std::size_t large = std::size_t{1} << 30;
  auto chunks = that_wants(receive_policy::exactly(large));
  BOOST_TEST(chunks.wished() == large);
  BOOST_TEST(chunks.chunk().size() == chunk_buffer::first_capacity);
  BOOST_TEST(chunks.chunk().capacity() <= chunk_buffer::most_reserved);
  chunks.add(chunk_buffer::first_capacity);
  BOOST_TEST((chunks.now() == state::full));
  chunks.grow();
  BOOST_TEST((chunks.now() == state::filling));
  BOOST_TEST(chunks.chunk().size() == 2 * chunk_buffer::first_capacity);
}

// BU-3
BOOST_AUTO_TEST_CASE(memory_of_a_large_chunk_is_freed_after_many_small_ones) {
  constexpr std::size_t large = std::size_t{1} << 20;
  auto chunks = that_wants(receive_policy::exactly(large));
  chunks.wish(receive_policy::exactly(10));
  chunks.want_next();
  BOOST_TEST(chunks.chunk().capacity() >= large);
  for (int i = 0; i < 2 * troupe::support::recent_peak::window; ++i) chunks.want_next();
  BOOST_TEST(chunks.chunk().capacity() <= 2 * chunk_buffer::kept_bytes);
}

// BU-1, BU-4: the first of these bytes came beyond the chunk.
BOOST_AUTO_TEST_CASE(bytes_go_into_memory_of_somebody_else_and_leave_the_chunk_as_it_is) {
  auto chunks = that_wants(receive_policy::exactly(4));
  read_into(chunks, "abcdef");
  BOOST_TEST(chunks.take() == 4U);
  std::string memory(5, '-');
  chunks.want_into(memory);
  chunks.add_ahead();
  BOOST_TEST((chunks.now() == state::filling));
  BOOST_TEST(!chunks.is_empty());
  read_into(chunks, "ghijk");
  BOOST_TEST((chunks.now() == state::complete));
  BOOST_TEST(memory == "efghi");
  BOOST_TEST(std::string(chunks.chunk().data(), chunks.chunk().size()) == "abcd");
  BOOST_TEST(chunks.take() == 5U);
  BOOST_TEST(chunks.space().iov_base == chunks.chunk().data());
  chunks.want_next();
  chunks.add_ahead();
  read_into(chunks, "lm");
  BOOST_TEST(take_from(chunks) == "jklm");
  BOOST_TEST(memory == "efghi");
}

BOOST_AUTO_TEST_SUITE_END()
