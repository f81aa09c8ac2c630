// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/tracer.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

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
           {"", "", highest, lowest, "", 0xffff'ffff'ffff'ffff}},
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

BOOST_AUTO_TEST_CASE(more_spans_than_are_asked_for_are_refused) {
  trace_log log;
  log.spans.resize(100);
  const auto bytes = pack(log);
  BOOST_TEST(unpack(bytes, 100).spans.size() == 100U);
  BOOST_CHECK_EXCEPTION(unpack(bytes, 99), troupe::error, [](const troupe::error& refusal) {
    return std::string(refusal.what()).find("100 spans, of which at most 99 come") != std::string::npos;
  });
  log.spans.resize(troupe::tracing::most_of_call);
  BOOST_TEST(unpack(pack(log)).spans.size() == log.spans.size());
  log.spans.emplace_back();
  BOOST_TEST(refused(pack(log)));
}

// Texts without bytes, and numbers of one byte, take much more memory than they have bytes.
BOOST_AUTO_TEST_CASE(texts_and_numbers_of_no_span_are_refused) {
  std::string texts = pack({});
  constexpr std::size_t others = 64;  // fields that are no texts
  for (std::size_t i = 0; i < 3 * troupe::tracing::most_of_call + others; ++i) texts += std::string("\x1a\0", 2);
  BOOST_TEST(refused(texts));
  texts.resize(texts.size() - 2 * others);
  unpack(texts);
  const auto numbers = pack({}) + std::string("\x3a\x80\x80\x80\x08", 5) + std::string(std::size_t{16} << 20, '\0');
  BOOST_TEST(refused(numbers));
}

BOOST_AUTO_TEST_CASE(the_oldest_spans_are_left_out_if_the_names_are_too_long_for_a_message) {
  trace_log log;
  log.dropped = 5;
  for (std::size_t i = 0; i < troupe::tracing::most_of_node; ++i)
    log.spans.push_back({std::to_string(i) + std::string(300, 'n'), "operator", static_cast<std::int64_t>(i), 0, ""});
  const auto bytes = pack(log);
  BOOST_TEST(bytes.size() < std::size_t{16} << 20);
  const auto came = unpack(bytes, troupe::tracing::most_of_node);
  BOOST_TEST(came.spans.size() == ((std::size_t{4} << 20) - 8) / 256);  // less the bytes of "operator"
  BOOST_TEST(came.dropped == 5 + log.spans.size() - came.spans.size());
  BOOST_TEST(came.spans.back().begin_ns == log.spans.back().begin_ns);
  log.spans.resize(
    troupe::tracing::most_of_call);  // all of a call, with names of any length, are within what a message may have
  BOOST_TEST(pack(log).size() < std::size_t{16} << 20);
  for (auto& each : log.spans) each.name = "forward";
  BOOST_TEST((unpack(pack(log)) == log));
}
