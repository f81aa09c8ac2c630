// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/durable_file.hpp>

#include <algorithm>
#include <set>
#include <string>

#include <boost/test/unit_test.hpp>

#include <actors/temporary_folder.hpp>
#include <troupe/messages/errors.hpp>

using namespace troupe;
using namespace troupe::test;
using support::checksum;

namespace {

std::uint64_t sum_of(const std::string& bytes) {
  checksum result;
  result.update(bytes.data(), bytes.size());
  return result.value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checksums)

BOOST_AUTO_TEST_CASE(the_checksum_does_not_depend_on_how_the_bytes_are_cut) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 37 % 251);
  checksum whole;
  whole.update(bytes.data(), bytes.size());
  for (std::size_t first = 0; first < 40; ++first)
    for (const std::size_t step : {1, 3, 7, 8, 9, 64}) {
      checksum cut;
      cut.update(bytes.data(), first);
      for (std::size_t at = first; at < bytes.size(); at += step)
        cut.update(bytes.data() + at, std::min(step, bytes.size() - at));
      BOOST_REQUIRE_EQUAL(cut.value(), whole.value());
    }
}

BOOST_AUTO_TEST_CASE(the_checksum_tells_every_flipped_bit_and_every_cut) {
  const std::string bytes(43, 'a');
  std::set<std::uint64_t> sums{sum_of(bytes)};
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    sums.insert(sum_of(flipped));
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) sums.insert(sum_of(bytes.substr(0, size)));
  sums.insert(sum_of(bytes + '\0'));
  BOOST_TEST(sums.size() == 1 + bytes.size() * 8 + bytes.size() + 1);
}

// The value is that of xxHash's own tests.
BOOST_AUTO_TEST_CASE(the_checksum_of_a_text_stays_the_same_in_every_release) { BOOST_TEST(sum_of("") == 0x2d06800538d394c2u); }

BOOST_AUTO_TEST_CASE(another_checksum_is_refused_by_its_name) {
  support::expect_checksum_name("xxh3_64");
  BOOST_TEST(contains(text_of<error>([] { support::expect_checksum_name("crc32"); }),
                      "expected a checksum of kind xxh3_64, got 'crc32'"));
}

BOOST_AUTO_TEST_SUITE_END()
