// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/trace_span.hpp>

#include <unordered_map>

#include <troupe/messages/errors.hpp>

namespace troupe::tracing {

namespace {

constexpr std::string_view magic = "troupe-trace-1\n";
constexpr std::size_t longest_text = 256;

void put(std::string& to, std::uint64_t x) {
  for (; x >= 0x80; x >>= 7) to.push_back(static_cast<char>(x | 0x80));
  to.push_back(static_cast<char>(x));
}

// Small numbers of either sign become small ones.
std::uint64_t zigzag(std::uint64_t difference) noexcept { return (difference << 1) ^ (0 - (difference >> 63)); }

std::uint64_t unzigzag(std::uint64_t x) noexcept { return (x >> 1) ^ (0 - (x & 1)); }

[[noreturn]] void refuse(const char* what) {
  throw error(errc::malformed_message, std::string("trace: expected what pack() wrote, got ") + what);
}

struct reader {
  std::string_view left;

  std::uint64_t number() {
    std::uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (left.empty()) refuse("bytes that end early");
      const auto byte = static_cast<unsigned char>(left.front());
      left.remove_prefix(1);
      result |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    refuse("a number of more than 64 bits");
  }

  std::string text() {
    const auto size = number();
    if (size > left.size() || size > longest_text) refuse("a text longer than the bytes that are left, or than any is");
    std::string result(left.substr(0, size));
    left.remove_prefix(size);
    return result;
  }
};

}  // namespace

std::string pack(const trace_log& log) {
  std::unordered_map<std::string_view, std::uint64_t> numbers;
  std::vector<std::string_view> texts;
  const auto number_of = [&](std::string_view text) {
    text = text.substr(0, longest_text);
    const auto [entry, fresh] = numbers.try_emplace(text, texts.size());
    if (fresh) texts.push_back(text);
    return entry->second;
  };
  std::string spans;
  std::uint64_t last = 0;
  for (const auto& span : log.spans) {
    for (const auto* text : {&span.name, &span.category, &span.track}) put(spans, number_of(*text));
    const auto begin = static_cast<std::uint64_t>(span.begin_ns);
    put(spans, zigzag(begin - last));
    put(spans, zigzag(static_cast<std::uint64_t>(span.end_ns) - begin));
    last = begin;
  }
  std::string result(magic);
  put(result, log.dropped);
  put(result, texts.size());
  for (const auto text : texts) {
    put(result, text.size());
    result += text;
  }
  put(result, log.spans.size());
  return result + spans;
}

trace_log unpack(std::string_view bytes) {
  if (!bytes.starts_with(magic)) refuse("other bytes");
  reader from{bytes.substr(magic.size())};
  trace_log result;
  result.dropped = from.number();
  std::vector<std::string> texts;
  for (auto count = from.number(); count > 0; --count) texts.push_back(from.text());
  const auto text = [&]() -> const std::string& {
    const auto number = from.number();
    if (number >= texts.size()) refuse("the number of a text that is not there");
    return texts[number];
  };
  std::uint64_t last = 0;
  for (auto count = from.number(); count > 0; --count) {
    trace_span span;
    for (auto* part : {&span.name, &span.category, &span.track}) *part = text();
    const auto begin = last + unzigzag(from.number());
    span.begin_ns = static_cast<std::int64_t>(begin);
    span.end_ns = static_cast<std::int64_t>(begin + unzigzag(from.number()));
    last = begin;
    result.spans.push_back(std::move(span));
  }
  if (!from.left.empty()) refuse("bytes after the last span");
  return result;
}

}  // namespace troupe::tracing
