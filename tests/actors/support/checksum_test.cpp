// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/durable_file.hpp>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <actors/temporary_folder.hpp>
#include <troupe/messages/errors.hpp>

using namespace troupe;
using namespace troupe::test;
using support::checksum;
using support::checksum_kind;

namespace troupe::support {

std::ostream& boost_test_print_type(std::ostream& to, checksum_kind kind) { return to << to_text(kind); }

}  // namespace troupe::support

namespace {

const auto kinds = boost::unit_test::data::make({checksum_kind::xxh3, checksum_kind::format_1});

std::uint64_t sum_of(const std::string& bytes, checksum_kind kind) {
  checksum result(kind);
  result.update(bytes.data(), bytes.size());
  return result.value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checksums)

BOOST_DATA_TEST_CASE(the_checksum_does_not_depend_on_how_the_stream_is_cut, kinds, kind) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 37 % 251);
  checksum whole(kind);
  whole.update(bytes.data(), bytes.size());
  for (std::size_t first = 0; first < 40; ++first)
    for (const std::size_t step : {1, 3, 7, 8, 9, 64}) {
      checksum cut(kind);
      cut.update(bytes.data(), first);
      for (std::size_t at = first; at < bytes.size(); at += step)
        cut.update(bytes.data() + at, std::min(step, bytes.size() - at));
      BOOST_REQUIRE_EQUAL(cut.value(), whole.value());
    }
}

BOOST_DATA_TEST_CASE(the_checksum_tells_every_flipped_bit_and_every_cut, kinds, kind) {
  const std::string bytes(43, 'a');
  const auto sum = [kind](const std::string& of) { return sum_of(of, kind); };
  std::set<std::uint64_t> sums{sum(bytes)};
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    sums.insert(sum(flipped));
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) sums.insert(sum(bytes.substr(0, size)));
  sums.insert(sum(bytes + '\0'));
  BOOST_TEST(sums.size() == 1 + bytes.size() * 8 + bytes.size() + 1);
}

// The first value is that of xxHash's own tests; the others were computed by a release that wrote format 1.
BOOST_AUTO_TEST_CASE(the_checksums_of_a_text_stay_the_same_in_every_release) {
  BOOST_TEST(sum_of("", checksum_kind::xxh3) == 0x2d06800538d394c2u);
  BOOST_TEST(sum_of("", checksum_kind::format_1) == 0x4b3f97b7846574b0u);
  BOOST_TEST(sum_of("a text of 25 bytes, or so", checksum_kind::format_1) == 0x8315ba7d62604814u);
}

BOOST_AUTO_TEST_CASE(a_kind_is_known_by_its_text) {
  for (const auto kind : {checksum_kind::xxh3, checksum_kind::format_1})
    BOOST_TEST((support::checksum_kind_named(support::to_text(kind)) == kind));
  BOOST_TEST(contains(text_of<error>([] { support::checksum_kind_named("crc32"); }),
                      "expected a checksum of kind xxh3_64 or format_1, got 'crc32'"));
}

BOOST_AUTO_TEST_SUITE_END()
