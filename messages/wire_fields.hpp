// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/inspect_test.cpp, tests/messages/hostile_test.cpp
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/message_size.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/tensor_rules.hpp>

/// Helpers of wire.hpp. For each struct, one function `fields` in wire.hpp both writes and reads the header, so it names each
/// field once. `put` writes a field of a header, `parse` reads a field. Only files in messages/ include this header.
namespace troupe::wire_fields {

/// What is wrong with a header that was read, as text; null if nothing is wrong.
using complaint = const char*;

template <class T, class Of>
concept is = std::same_as<std::remove_const_t<T>, Of>;
template <class T>
concept header = std::derived_from<T, google::protobuf::Message>;

using fixed64_list = google::protobuf::RepeatedField<std::uint64_t>;
using google::protobuf::RepeatedField;
using google::protobuf::RepeatedPtrField;

template <class Header>
class writer;
template <class Header>
class reader;

template <class Number, class T>
Number value_of(const T& x) {
  if constexpr (std::same_as<T, c10::Device>)
    return wire_number(x).value_or(0);
  else if constexpr (requires { x.value; })
    return x.value;
  else
    return static_cast<Number>(x);
}

template <class Number, class T>
complaint parse_value(const Number& from, T& x) {
  if constexpr (std::same_as<T, c10::Device>) {
    x = wire_device(from).value_or(c10::Device(c10::kCPU));  // as for a node that does not know the device
  } else if constexpr (std::same_as<T, wire_format>) {
    x = wire_format_of(from).value_or(wire_format::exact);  // a newer node may name a format that this version does not know
  } else if constexpr (std::same_as<T, member_state>) {
    if (from > static_cast<Number>(member_state::left)) return "news holds a state that is unknown";
    x = static_cast<member_state>(from);
  } else if constexpr (std::same_as<T, requests::tensors>) {
    if (from > static_cast<Number>(requests::tensors::gradients)) return "a request is for tensors that are unknown";
    x = static_cast<requests::tensors>(from);
  } else if constexpr (requires { x.value; }) {
    x.value = from;
  } else {
    if constexpr (sizeof(T) < sizeof(Number))
      if (from > std::numeric_limits<T>::max()) return sizeof(T) == 2 ? "a port is above 65535" : "an error code is above 255";
    x = static_cast<T>(from);
  }
  return nullptr;
}

inline void put(std::string& to, const std::string& x) { to = x; }
inline complaint parse(const std::string& from, std::string& x) {
  x = from;
  return nullptr;
}

inline void put(RepeatedPtrField<std::string>& to, const std::vector<std::string>& xs) { to.Add(xs.begin(), xs.end()); }
inline complaint parse(const RepeatedPtrField<std::string>& from, std::vector<std::string>& xs) {
  xs.assign(from.begin(), from.end());
  return nullptr;
}

template <class Number, class T>
void put(RepeatedField<Number>& to, const std::vector<T>& xs) {
  to.Reserve(static_cast<int>(xs.size()));
  for (const auto& x : xs) to.AddAlreadyReserved(value_of<Number>(x));
}

template <class Number, class T>
complaint parse(const RepeatedField<Number>& from, std::vector<T>& xs) {
  if constexpr (std::is_arithmetic_v<T>) {
    xs.assign(from.begin(), from.end());
    return nullptr;
  } else {
    if (static_cast<std::size_t>(from.size()) > max_entries) return "a list of nodes or passes is longer than any node sends";
    xs.resize(static_cast<std::size_t>(from.size()));
    for (int i = 0; i < from.size(); ++i) xs[static_cast<std::size_t>(i)].value = from[i];
    return nullptr;
  }
}

template <header Field, class T>
void put(Field& to, const T& x) {
  writer<Field> archive{to};
  fields(archive, x);
}

template <header Field, class T>
complaint parse(const Field& from, T& x) {
  reader<Field> archive{from};
  fields(archive, x);
  return archive.bad;
}

template <header Field, class T>
void put(RepeatedPtrField<Field>& to, const std::vector<T>& xs) {
  for (const T& x : xs) put(*to.Add(), x);
}

template <header Field, class T>
complaint parse(const RepeatedPtrField<Field>& from, std::vector<T>& xs) {
  if constexpr (requires(const Field& x) { x.id(); })
    for (const Field& each : from)
      if (each.id() == 0)  // before memory is allocated, because entries without fields cost a sender little
        return std::same_as<T, member> ? "a member of a list has no id" : "news is about a member without an id";
  xs.clear();
  xs.reserve(static_cast<std::size_t>(from.size()));
  for (const Field& each : from)
    if (complaint bad = parse(each, xs.emplace_back())) return bad;
  return nullptr;
}

inline void put(fixed64_list& to, const std::array<std::uint64_t, 4>& x) { to.Add(x.begin(), x.end()); }
inline complaint parse(const fixed64_list& from, std::array<std::uint64_t, 4>& x) {
  if (from.size() != static_cast<int>(x.size())) return "expected a mark of four words";
  std::copy(from.begin(), from.end(), x.begin());
  return nullptr;
}

inline void put(RepeatedField<std::uint32_t>& to, const std::vector<c10::Device>& xs) {
  for (const auto& x : xs) to.Add(wire_number(x).value_or(~std::uint32_t{0}));
}
inline complaint parse(const RepeatedField<std::uint32_t>& from, std::vector<c10::Device>& xs) {
  xs.clear();
  xs.reserve(static_cast<std::size_t>(from.size()));
  for (const std::uint32_t number : from) {
    const auto device = wire_device(number);
    if (!device) return "a tensor is for a kind of device that this version does not know; update this node";
    xs.push_back(*device);
  }
  return nullptr;
}

inline void put(RepeatedField<std::uint32_t>& to, const std::vector<autocast_mode>& xs) {
  for (const auto& [kind, dtype] : xs)
    to.Add(wire_number(c10::Device(kind)).value_or(~std::uint32_t{0}) | wire_number(dtype).value_or(0xffff));
}
inline complaint parse(const RepeatedField<std::uint32_t>& from, std::vector<autocast_mode>& xs) {
  xs.clear();
  for (const std::uint32_t number : from) {
    const auto device = wire_device(number & 0xffff0000);
    const auto dtype = dtype_of(number & 0xffff);
    if (!device || !dtype || !c10::isFloatingType(*dtype))
      return "autocast is on for a kind of device or a dtype that this version does not know; update this node";
    for (const autocast_mode& other : xs)
      if (other.device == device->type()) return "autocast names a kind of device twice";
    xs.push_back({device->type(), *dtype});
  }
  return nullptr;
}

inline void put(wire::Attribute& to, bool x) { to.set_truth(x); }
inline void put(wire::Attribute& to, std::int64_t x) { to.set_integer(x); }
inline void put(wire::Attribute& to, double x) { to.set_real(x); }
inline void put(wire::Attribute& to, const std::string& x) { to.set_text(x); }
inline void put(wire::Attribute& to, const std::vector<std::int64_t>& x) { put(*to.mutable_integers()->mutable_values(), x); }
inline void put(wire::Attribute& to, const std::vector<double>& x) { put(*to.mutable_reals()->mutable_values(), x); }
inline void put(wire::Attribute& to, const std::vector<std::string>& x) { put(*to.mutable_texts()->mutable_values(), x); }

inline void put(RepeatedPtrField<wire::Attribute>& to, const attributes& xs) {
  for (const auto& [name, x] : xs) {
    wire::Attribute& entry = *to.Add();
    entry.set_name(name);
    std::visit([&](const auto& value) { put(entry, value); }, x.value);
  }
}

/// Returns the value; none if this version does not know its type.
inline std::optional<attribute> value_in(const wire::Attribute& from) {
  switch (from.value_case()) {
    case wire::Attribute::kTruth:
      return from.truth();
    case wire::Attribute::kInteger:
      return std::int64_t{from.integer()};
    case wire::Attribute::kReal:
      return from.real();
    case wire::Attribute::kText:
      return from.text();
    case wire::Attribute::kIntegers:
      return std::vector<std::int64_t>(from.integers().values().begin(), from.integers().values().end());
    case wire::Attribute::kReals:
      return std::vector<double>(from.reals().values().begin(), from.reals().values().end());
    case wire::Attribute::kTexts:
      return std::vector<std::string>(from.texts().values().begin(), from.texts().values().end());
    default:
      return std::nullopt;
  }
}

inline complaint parse(const RepeatedPtrField<wire::Attribute>& from, attributes& xs) {
  xs.clear();
  if (static_cast<std::size_t>(from.size()) > max_attributes) return "a message has more attributes than any node sends";
  for (const wire::Attribute& entry : from) {
    if (entry.name().size() > max_attribute_name_bytes) return "an attribute has a longer name than any node sends";
    auto x = value_in(entry);
    if (!x) return "an attribute has no value of a type that is known here";
    if (!xs.emplace(entry.name(), std::move(*x)).second) return "an attribute is given twice";
  }
  return nullptr;
}

/// Returns why no node makes this weight; null if a node can make it.
inline complaint why_not(const std::vector<std::uint32_t>& weight) {
  constexpr std::uint32_t deepest = std::uint32_t{1} << 31;  // no weight is halved this often
  if (weight.empty()) return "a message of a pass without weight";
  for (std::size_t i = 0; i < weight.size(); ++i)
    if (weight[i] > deepest || (i > 0 && weight[i] <= weight[i - 1]))
      return "the weight of a message is not in ascending order, or too small";
  return nullptr;
}

/// Reads the devices of a node. Skips kinds that this version does not know, because a newer node may have them.
inline complaint parse_known(const RepeatedField<std::uint32_t>& from, std::vector<c10::Device>& xs) {
  xs.clear();
  if (static_cast<std::size_t>(from.size()) > max_devices) return "a node names more devices than any node has";
  for (const std::uint32_t number : from)
    if (const auto device = wire_device(number)) xs.push_back(*device);
  return nullptr;
}

/// Fills a header, which must be empty.
template <class Header>
class writer {
 public:
  static constexpr bool reads = false;
  Header& header;

  /// Writes a field that is a number, or an id that holds one number.
  template <class T, class Number>
  void operator()(const T& x, Number (Header::*)() const, void (Header::*set)(Number)) {
    (header.*set)(value_of<Number>(x));
  }
  /// Writes a field of another type.
  template <class T, class Field>
  void operator()(const T& x, const Field& (Header::*)() const, Field* (Header::*field)()) {
    put(*(header.*field)(), x);
  }
  void refuse(complaint) {}
};

/// Reads a header. Stops at the first field that is wrong.
template <class Header>
class reader {
 public:
  static constexpr bool reads = true;
  const Header& header;
  complaint bad = nullptr;

  template <class T, class Number>
  void operator()(T& x, Number (Header::*number)() const, void (Header::*)(Number)) {
    if (bad == nullptr) bad = parse_value((header.*number)(), x);
  }
  template <class T, class Field>
  void operator()(T& x, const Field& (Header::*field)() const, Field* (Header::*)()) {
    if (bad == nullptr) bad = parse((header.*field)(), x);
  }
  void refuse(complaint why) {
    if (bad == nullptr) bad = why;
  }
};

template <class Archive>
using header_in = std::remove_cvref_t<decltype(std::declval<Archive>().header)>;

/// Writes or reads a list of message ids, which is two lists in a header: of nodes and of numbers.
template <class Archive>
void message_ids(Archive& a, is<std::vector<message_id>> auto& xs, const fixed64_list& (header_in<Archive>::*nodes)() const,
                 fixed64_list* (header_in<Archive>::*add_nodes)(), const fixed64_list& (header_in<Archive>::*numbers)() const,
                 fixed64_list* (header_in<Archive>::*add_numbers)()) {
  if constexpr (Archive::reads) {
    const auto& from = (a.header.*nodes)();
    const auto& counts = (a.header.*numbers)();
    if (from.size() != counts.size()) return a.refuse("a list of message ids has not as many nodes as numbers");
    xs.resize(static_cast<std::size_t>(from.size()));
    for (int i = 0; i < from.size(); ++i) xs[static_cast<std::size_t>(i)] = {counts[i], {from[i]}};
  } else {
    for (const message_id& x : xs) {
      (a.header.*add_nodes)()->Add(x.node.value);
      (a.header.*add_numbers)()->Add(x.number);
    }
  }
}

}  // namespace troupe::wire_fields
