// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/trace_span.hpp>

#include <limits>
#include <unordered_map>

#include <troupe/actors/tracing/generated/trace.pb.h>
#include <troupe/messages/errors.hpp>

namespace troupe::tracing {

namespace {

constexpr std::size_t longest_text = 256;

constexpr std::int64_t time_plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

[[noreturn]] void refuse(const std::string& what) {
  throw error(errc::malformed_message, "trace: expected what pack() wrote, got " + what);
}

void check(const trace_wire::Log& log) {
  for (const auto& text : log.texts())
    if (text.size() > longest_text) refuse("a text of " + std::to_string(text.size()) + " bytes");
  const auto entries = [&](std::size_t count, const char* what) {
    if (!log.has_spans() || count != log.spans())
      refuse(std::to_string(count) + ' ' + what + " for " +
             (log.has_spans() ? std::to_string(log.spans()) : "an unknown number of") + " spans");
  };
  entries(static_cast<std::size_t>(log.names_size()), "names");
  entries(static_cast<std::size_t>(log.categories_size()), "categories");
  entries(static_cast<std::size_t>(log.tracks_size()), "tracks");
  entries(static_cast<std::size_t>(log.begins_ns_size()), "begins");
  entries(static_cast<std::size_t>(log.lengths_ns_size()), "lengths");
}

}  // namespace

std::string pack(const trace_log& log) {
  trace_wire::Log to;
  to.set_spans(log.spans.size());
  to.set_dropped(log.dropped);
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  const auto number_of = [&](std::string_view text) {
    text = text.substr(0, longest_text);
    const auto [entry, fresh] = numbers.try_emplace(text, static_cast<std::uint32_t>(to.texts_size()));
    if (fresh) to.add_texts(text.data(), text.size());
    return entry->second;
  };
  std::int64_t last = 0;
  for (const auto& span : log.spans) {
    to.add_names(number_of(span.name));
    to.add_categories(number_of(span.category));
    to.add_tracks(number_of(span.track));
    to.add_begins_ns(time_minus(span.begin_ns, last));
    to.add_lengths_ns(time_minus(span.end_ns, span.begin_ns));
    last = span.begin_ns;
  }
  return to.SerializeAsString();
}

trace_log unpack(std::string_view bytes) {
  trace_wire::Log from;
  if (bytes.size() > std::numeric_limits<int>::max() || !from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    refuse("other bytes");
  check(from);
  const auto text = [&](std::uint32_t number) -> const std::string& {
    if (number >= static_cast<std::uint32_t>(from.texts_size()))
      refuse("text " + std::to_string(number) + " of " + std::to_string(from.texts_size()));
    return from.texts(static_cast<int>(number));
  };
  trace_log result;
  result.dropped = from.dropped();
  result.spans.reserve(from.spans());
  std::int64_t last = 0;
  for (int i = 0; i < from.names_size(); ++i) {
    last = time_plus(last, from.begins_ns(i));
    result.spans.push_back(
      {text(from.names(i)), text(from.categories(i)), last, time_plus(last, from.lengths_ns(i)), text(from.tracks(i))});
  }
  return result;
}

}  // namespace troupe::tracing
