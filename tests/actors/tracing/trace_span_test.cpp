// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/trace_span.hpp>

#include <limits>

#include <boost/test/unit_test.hpp>

#include <troupe/messages/errors.hpp>

namespace {

using troupe::tracing::pack;
using troupe::tracing::trace_log;
using troupe::tracing::unpack;

constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
constexpr auto highest = std::numeric_limits<std::int64_t>::max();

trace_log sample() {
  return {{{"forward", "call", 1'000'000'007, 1'000'500'000, "calls"},
           {"forward", "call", 5, -5, "calls"},
           {std::string("\0\xff\"", 3), "", lowest, highest, "backward"},
           {"", "", highest, lowest, ""}},
          42};
}

bool refused(std::string_view bytes) {
  try {
    unpack(bytes);
  } catch (const troupe::error& problem) {
    return problem.code() == troupe::errc::malformed_message;
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_packed_is_read_back) {
  BOOST_TEST((unpack(pack(sample())) == sample()));
  BOOST_TEST((unpack(pack({})) == trace_log{}));
}

BOOST_AUTO_TEST_CASE(a_repeated_name_is_written_once) {
  trace_log log;
  for (int i = 0; i < 1000; ++i) log.spans.push_back({"a name of some length", "category", 1000 * i, 1000 * i + 500, "track"});
  BOOST_TEST(pack(log).size() < 10'000);
  BOOST_TEST((unpack(pack(log)) == log));
}

BOOST_AUTO_TEST_CASE(a_name_too_long_is_cut) {
  const trace_log log{{{std::string(1000, 'x'), "", 0, 1, ""}}, 0};
  BOOST_TEST(unpack(pack(log)).spans.front().name == std::string(256, 'x'));
}

BOOST_AUTO_TEST_CASE(bytes_cut_anywhere_are_refused) {
  const auto bytes = pack(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    BOOST_TEST(refused(std::string_view(bytes).substr(0, size)), "cut after " << size);
  BOOST_TEST(refused(bytes + "x"));
}

BOOST_AUTO_TEST_CASE(bytes_changed_anywhere_are_read_or_refused_but_do_no_harm) {
  const auto bytes = pack(sample());
  std::size_t refusals = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (int change = 1; change < 256; ++change) {
      auto mutated = bytes;
      mutated[i] = static_cast<char>(mutated[i] ^ change);
      try {
        BOOST_TEST(unpack(mutated).spans.size() <= mutated.size() / 5);
      } catch (const troupe::error& problem) {
        BOOST_TEST((problem.code() == troupe::errc::malformed_message));
        ++refusals;
      }
    }
  BOOST_TEST(refusals > 0);
}

BOOST_AUTO_TEST_CASE(a_count_without_its_spans_takes_no_memory) {
  auto bytes = pack({});
  bytes.pop_back();
  bytes += "\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  BOOST_TEST(refused(bytes));
}
