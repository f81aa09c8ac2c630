// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_types.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

#include <troupe/actors/network/message_outline.hpp>

namespace troupe::network {

namespace {

constexpr std::array<std::string_view, 3> harmful = {"@config_value", "@group", "@group_down"};
constexpr std::array<std::string_view, 3> of_streams = {"@open_stream_msg", "@upstream_msg", "@downstream_msg"};
constexpr std::array<std::string_view, 4> nests = {"@message", "@error", "@exit", "@down"};
/// CAF makes room for all bytes that a value of this type announces.
constexpr std::string_view unlimited = "@charbuf";
constexpr std::array<std::string_view, 18> plain = {
  "@atom",     "@duration",  "@i16", "@i32", "@i64", "@i8", "@ldouble", "@str", "@strong_actor_ptr",
  "@timespan", "@timestamp", "@u16", "@u32", "@u64", "@u8", "@unit",    "bool", "double"};
constexpr std::string_view begin_of_troupes = "troupe.";

template <class Range>
bool is_in(const Range& all, std::string_view type) {
  return std::find(all.begin(), all.end(), type) != all.end();
}

/// Whether `holds` is true for one of the types.
template <class Predicate>
bool any_type(std::string_view types, Predicate holds) {
  types.remove_prefix(std::min(types.size(), message_outline::begin_of_types.size()));
  while (!types.empty()) {
    types.remove_prefix(1);  // the plus sign
    const auto end = std::min(types.find('+'), types.size());
    if (holds(types.substr(0, end))) return true;
    types.remove_prefix(end);
  }
  return false;
}

}  // namespace

bool has_harmful_type(std::string_view types, bool in_another) noexcept {
  return any_type(types, [&](auto type) { return is_in(harmful, type) || (in_another && is_in(of_streams, type)); });
}

bool has_nest(std::string_view types) noexcept {
  return any_type(types, [](auto type) { return is_in(nests, type); });
}

bool has_unlimited_type(std::string_view types) noexcept {
  return any_type(types, [](auto type) { return type == unlimited; });
}

bool names_harmful_type(std::string_view bytes) noexcept {
  const auto names = [&](std::string_view type) {
    for (auto at = bytes.find(type); at != std::string_view::npos; at = bytes.find(type, at + 1))
      if (at > 0 && bytes[at - 1] == '+') return true;
    return false;
  };
  return std::any_of(harmful.begin(), harmful.end(), names) || std::any_of(of_streams.begin(), of_streams.end(), names);
}

bool is_answer_of_node(std::string_view types) noexcept {
  return !any_type(types, [](auto type) { return !type.starts_with(begin_of_troupes) && !is_in(plain, type); });
}

bool is_plain_error(std::string_view bytes) noexcept {
  constexpr std::size_t code_and_category = sizeof(std::uint8_t) + sizeof(std::uint64_t);
  if (bytes.size() < code_and_category) return false;
  const auto context = content_of(bytes.substr(code_and_category));
  return context && !has_harmful_type(context->types, true) && !has_nest(context->types) && !has_unlimited_type(context->types);
}

}  // namespace troupe::network
