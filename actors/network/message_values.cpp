// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/message_values.hpp>

#include <endian.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include <caf/atom.hpp>
#include <caf/node_id.hpp>

#include <troupe/actors/network/message_head.hpp>

namespace troupe::network {

namespace {

using fixed = std::pair<std::string_view, std::size_t>;
/// Types whose values all have one size, and this size in bytes.
constexpr std::array<fixed, 18> of_one_size = {{{"@atom", 8},
                                                {"@duration", 12},
                                                {"@i16", 2},
                                                {"@i32", 4},
                                                {"@i64", 8},
                                                {"@i8", 1},
                                                {"@message_id", 8},
                                                {"@timespan", 8},
                                                {"@timestamp", 8},
                                                {"@u16", 2},
                                                {"@u32", 4},
                                                {"@u64", 8},
                                                {"@u8", 1},
                                                {"@unit", 0},
                                                {"@timeout", 16},
                                                {"bool", 1},
                                                {"double", 8},
                                                {"float", 4}}};
/// For a value of this type CAF allocates as many bytes as the value announces, before it checks that they have come.
constexpr std::string_view bytes_of_char = "@charbuf";
/// Types that are sequences, and the size of an element in bytes.
constexpr std::array<fixed, 6> sequences = {
  {{"@str", 1}, {bytes_of_char, 1}, {"@ldouble", 1}, {"@u16str", 2}, {"@u32str", 4}, {"std::vector<@atom>", 8}}};
constexpr std::array<std::string_view, 4> pointers_to_actors = {"@actor", "@addr", "@strong_actor_ptr", "@weak_actor_ptr"};
constexpr std::array<std::string_view, 4> vectors_of_pointers = {"@actorvec", "@addrvec", "std::vector<@actor>",
                                                                 "std::vector<@addr>"};
constexpr std::array<std::string_view, 2> texts = {"@strset", "@strvec"};
/// Types whose values may hold messages or ids of nodes, besides pointers to actors.
constexpr std::array<std::string_view, 5> with_more_in_them = {"@node", "@message", "@error", "@exit", "@down"};
/// The beginnings of the names of CAF's types that must not be named in bytes of an unknown layout. Such bytes may hold a list
/// of types, in which a plus sign stands before each name. So a message is wrong if its bytes of an unknown layout have a plus
/// sign and then one of these beginnings.
constexpr std::array<std::string_view, 17> forbidden_beginnings = {
  "@config_value", "@group",    "settings",         "dictionary<@", "std::vector<@", "std::vector<troupe.",
  "@open_stream",  "@upstream", "@downstream",      "stream<",      "@new_",         "@accept",
  "@connection_",  "@protocol", "@address_listing", "@receive_",    bytes_of_char};
constexpr std::string_view begin_of_troupes = "troupe.";
/// CAF registers the vector of a type together with the type. No node sends a vector of a type of troupe's.
constexpr std::string_view begin_of_vectors = "std::vector<troupe.";
/// messages/inspect.cpp begins a value with two sizes: that of the header, and that of the payload.
constexpr std::size_t prefix_of_troupes = sizeof(std::uint32_t) + sizeof(std::uint64_t);
constexpr std::size_t code_and_category = sizeof(std::uint8_t) + sizeof(std::uint64_t);
constexpr std::size_t host_and_process = message_outline::node_bytes - sizeof(std::uint64_t);

template <class Range>
bool is_in(const Range& all, std::string_view type) noexcept {
  return std::find(all.begin(), all.end(), type) != all.end();
}

template <class Range>
const fixed* find_in(const Range& all, std::string_view type) noexcept {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == type; });
  return found == all.end() ? nullptr : &*found;
}

/// Whether a type is none of CAF's, if it is in none of the tables of types. The names of CAF's types have an @, except the
/// names in this function.
bool is_own_type(std::string_view type) noexcept {
  return type.find('@') == std::string_view::npos && type != "settings" && !type.starts_with("stream<") &&
         !type.starts_with(begin_of_vectors);
}

bool may_hold_nodes(std::string_view type) noexcept {
  return is_in(pointers_to_actors, type) || is_in(vectors_of_pointers, type) || is_in(with_more_in_them, type);
}

/// Whether walk::value() may read values of the type.
bool may_come(std::string_view type) noexcept {
  return find_in(of_one_size, type) != nullptr || find_in(sequences, type) != nullptr || is_in(texts, type) ||
         may_hold_nodes(type) || type == "@strmap" || type.starts_with(begin_of_troupes) || is_own_type(type);
}

/// Calls `look` for each type of the list, until a call returns false. Returns whether all calls returned true.
template <class Look>
bool for_each_type(std::string_view types, Look look) noexcept {
  types.remove_prefix(std::min(types.size(), message_outline::begin_of_types.size()));
  while (!types.empty()) {
    types.remove_prefix(1);  // the plus sign
    const auto end = std::min(types.find('+'), types.size());
    if (!look(types.substr(0, end))) return false;
    types.remove_prefix(end);
  }
  return true;
}

/// Walks through values in the order in which CAF reads them. A function returns false if the message is wrong (see
/// message_values).
class walk {
 public:
  walk(std::string_view bytes, message_values& into) noexcept : from_(bytes), into_(into) {}

  bool list(std::string_view types, std::size_t depth) noexcept {
    if (depth > message_values::most_nested) return false;
    return for_each_type(types, [&](auto type) {
      if (!count_values(1)) return false;
      if (into_.has_unknown_layout) return may_follow(type);
      return from_.left().empty() ? may_be_missing(type) : value(type, depth);
    });
  }

  /// Walks through an error that is the last of the bytes.
  bool last_error() noexcept {
    if (!from_.take(code_and_category)) return false;
    return from_.left().empty() || (content_of(from_.left()) && message(0));
  }

  std::string_view left() const noexcept { return from_.left(); }
  /// Whether a value that was not walked through may hold the id of a node. Values of own types do not count.
  bool has_left_nodes() const noexcept { return has_left_nodes_; }

 private:
  /// Whether a value of the type may come after a value of an own type.
  bool may_follow(std::string_view type) noexcept {
    has_left_nodes_ = has_left_nodes_ || may_hold_nodes(type);
    return may_come(type) && type != bytes_of_char;
  }

  /// Whether the list of types may name the type although no byte is left for its value. CAF stops at this value, or has
  /// stopped before it.
  bool may_be_missing(std::string_view type) noexcept {
    into_.has_unknown_layout = is_own_type(type);
    return may_come(type);
  }

  bool value(std::string_view type, std::size_t depth) noexcept {
    if (const auto* found = find_in(of_one_size, type)) return from_.take(found->second).has_value();
    if (const auto* found = find_in(sequences, type)) return sequence(found->second);
    if (is_in(pointers_to_actors, type)) return pointer();
    if (is_in(vectors_of_pointers, type)) return many([&] { return pointer(); });
    if (is_in(texts, type)) return many([&] { return sequence(1); });
    if (type == "@strmap") return many([&] { return sequence(1) && sequence(1); });
    if (type == "@node") return node().has_value();
    if (type == "@message") return message(depth);
    if (type == "@error") return error(depth);
    if (type == "@exit" || type == "@down") return pointer() && error(depth);
    if (type.starts_with(begin_of_troupes) && depth == 0) return troupes();
    if (!is_own_type(type)) return false;
    // An own type, or a type of troupe's within an inner message. If CAF can't read such a value of troupe's, CAF goes on
    // behind the inner message, at a byte that is not known here.
    into_.has_unknown_layout = true;
    return true;
  }

  bool sequence(std::size_t bytes_of_element) noexcept {
    const auto count = from_.take_size();
    return count && from_.take(*count * bytes_of_element);
  }

  bool count_values(std::size_t more) noexcept {
    if (more > message_values::most_values - count_) return false;
    count_ += more;
    return true;
  }

  template <class Element>
  bool many(Element element) noexcept {
    const auto count = from_.take_size();
    if (!count || !count_values(*count)) return false;
    for (std::size_t i = 0; i < *count; ++i)
      if (!element()) return false;
    return true;
  }

  bool troupes() noexcept {
    const auto prefix = from_.take(prefix_of_troupes);
    if (!prefix) return false;
    std::uint32_t header = 0;
    std::uint64_t payload = 0;
    std::memcpy(&header, prefix->data(), sizeof header);
    std::memcpy(&payload, prefix->data() + sizeof header, sizeof payload);
    return from_.take(header) && payload <= from_.left().size() && from_.take(payload);
  }

  /// True: the id of an actor system. False: CAF's id for no node. Empty: another id, or too few bytes.
  std::optional<bool> node() noexcept {
    const auto kind = from_.take_number();
    if (!kind) return std::nullopt;
    if (*kind == static_cast<std::uint64_t>(caf::atom(""))) return false;
    if (*kind != static_cast<std::uint64_t>(caf::node_id::default_data::class_id) || !from_.take(host_and_process))
      return std::nullopt;
    return true;
  }

  bool pointer() noexcept {
    const auto actor = from_.take_number();
    const auto before = from_.left();
    const auto where = node();
    if (!actor || !where || (*actor != 0) != *where) return false;
    if (!*where) return true;
    if (++into_.pointers > message_values::most_pointers) return false;
    into_.node = before.substr(0, message_outline::node_bytes);
    return true;
  }

  bool error(std::size_t depth) noexcept { return from_.take(code_and_category) && message(depth); }

  /// If CAF can't read an inner message, CAF leaves this message empty. CAF then reads the next value at the byte where the
  /// reading has stopped. If CAF can't write an inner message, CAF writes the next value at the byte where the writing has
  /// stopped.
  bool message(std::size_t depth) noexcept {
    if (from_.left().empty()) return true;
    const auto content = content_of(from_.left());
    if (!content) {
      into_.has_unknown_layout = has_left_nodes_ = true;
      return true;
    }
    from_.take(from_.left().size() - content->values.size());
    return list(content->types, depth + 1);
  }

  front_reader from_;
  message_values& into_;
  bool has_left_nodes_ = false;
  std::size_t count_ = 0;
};

/// Whether a name with a forbidden beginning follows a plus sign. Reads the bytes only once, because the sender chooses how
/// many there are and this thread serves all connections.
bool has_forbidden_name(std::string_view bytes) noexcept {
  for (auto at = bytes.find('+'); at != std::string_view::npos; at = bytes.find('+')) {
    bytes.remove_prefix(std::min(bytes.size(), bytes.find_first_not_of('+', at)));
    if (bytes.empty()) return false;
    for (const auto& each : forbidden_beginnings)  // most comparisons end at the first letter
      if (std::mismatch(each.begin(), each.end(), bytes.begin(), bytes.end()).first == each.end()) return true;
  }
  return false;
}

bool has_mark_of_uri(std::string_view bytes) noexcept {
  const auto mark = htobe64(static_cast<std::uint64_t>(caf::node_id::uri_data::class_id));
  return !bytes.empty() && ::memmem(bytes.data(), bytes.size(), &mark, sizeof mark) != nullptr;
}

template <class Walk>
message_values looked_at(std::string_view bytes, Walk how) noexcept {
  message_values result;
  walk through(bytes, result);
  result.is_wrong = !how(through) || (result.has_unknown_layout && has_forbidden_name(through.left())) ||
                    (through.has_left_nodes() && has_mark_of_uri(through.left()));
  return result;
}

}  // namespace

message_values message_values::of(std::string_view types, std::string_view values) noexcept {
  return looked_at(values, [&](walk& through) { return through.list(types, 0); });
}

message_values message_values::of_error(std::string_view bytes) noexcept {
  return looked_at(bytes, [](walk& through) { return through.last_error(); });
}

bool is_answer_of_node(std::string_view types) noexcept {
  return for_each_type(types, [](auto type) {
    return type.starts_with(begin_of_troupes) || is_in(pointers_to_actors, type) || find_in(of_one_size, type) != nullptr ||
           type == "@str";
  });
}

bool is_actor_system(std::string_view node) noexcept {
  assert(node.size() == message_outline::node_bytes);
  front_reader from(node);
  return from.take_number() == static_cast<std::uint64_t>(caf::node_id::default_data::class_id) &&
         from.left().find_first_not_of('\0') != std::string_view::npos;
}

}  // namespace troupe::network
