// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/complaint.hpp>
#include <troupe/messages/message_size.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/tensor_rules.hpp>

/// The parts that several headers have: ids, lists of ids, attributes, addresses. `put` fills a header, `parse` reads a header.
/// Private to this room.
namespace troupe::wire_parts {

using fixed64_list = google::protobuf::RepeatedField<std::uint64_t>;

// All headers use the same field names for the parts of an id, so one helper per part serves all of them.
template <class Header>
void put_context(Header& to, const context_id& x) {
  to.set_context_node(x.node.value);
  to.set_context_number(x.number);
}

template <class Header>
context_id parse_context(const Header& from) {
  return {{from.context_node()}, from.context_number()};
}

template <class Header>
void put_message(Header& to, const message_id& x) {
  to.set_message_node(x.node.value);
  to.set_message_number(x.number);
}

template <class Header>
message_id parse_message(const Header& from) {
  return {from.message_number(), {from.message_node()}};
}

inline complaint why_not_number(const message_id& x) {
  return x.number > highest_message_number ? "the number of a message is above 2^63, and no node counts so far" : nullptr;
}

template <class Header, class Message>
void put_pass(Header& to, const Message& x) {
  put_context(to, x.context);
  to.set_pass(x.pass.value);
}

template <class Header, class Message>
void parse_pass(const Header& from, Message& x) {
  x.context = parse_context(from);
  x.pass.value = from.pass();
}

template <class Id>
requires(std::same_as<Id, node_id> || std::same_as<Id, pass_number>) void put(fixed64_list& to, const std::vector<Id>& xs) {
  to.Reserve(static_cast<int>(xs.size()));
  for (const Id& x : xs) to.AddAlreadyReserved(x.value);
}

template <class Id>
requires(std::same_as<Id, node_id> || std::same_as<Id, pass_number>) complaint
  parse(const fixed64_list& from, std::vector<Id>& xs) {
  if (static_cast<std::size_t>(from.size()) > max_entries) return "a list of nodes or passes is longer than any node sends";
  xs.resize(static_cast<std::size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) xs[static_cast<std::size_t>(i)].value = from[i];
  return nullptr;
}

inline void put(fixed64_list& nodes, fixed64_list& numbers, const std::vector<message_id>& xs) {
  nodes.Reserve(static_cast<int>(xs.size()));
  numbers.Reserve(static_cast<int>(xs.size()));
  for (const message_id& x : xs) {
    nodes.AddAlreadyReserved(x.node.value);
    numbers.AddAlreadyReserved(x.number);
  }
}

inline complaint parse(const fixed64_list& nodes, const fixed64_list& numbers, std::vector<message_id>& xs) {
  if (nodes.size() != numbers.size()) return "a list of message ids has not as many nodes as numbers";
  xs.resize(static_cast<std::size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i) xs[static_cast<std::size_t>(i)] = {numbers[i], {nodes[i]}};
  return nullptr;
}

inline void put(wire::Purse& to, const purse& x) {
  to.mutable_weight()->Add(x.weight.begin(), x.weight.end());
  to.set_begun(x.begun);
  to.set_settled(x.settled);
}

inline complaint parse(const wire::Purse& from, purse& x) {
  constexpr std::uint32_t deepest = std::uint32_t{1} << 31;  // no weight is halved this often
  if (from.weight().empty()) return "a purse without weight";
  for (int i = 0; i < from.weight_size(); ++i)
    if (from.weight(i) > deepest || (i > 0 && from.weight(i) <= from.weight(i - 1)))
      return "the weight of a purse is not in ascending order, or too small";
  x.weight.assign(from.weight().begin(), from.weight().end());
  x.begun = from.begun();
  x.settled = from.settled();
  return nullptr;
}

template <class Header>
void put_values(Header& to, const attributes& xs) {
  for (const auto& [name, x] : xs) {
    wire::Attribute& entry = *to.add_values();
    entry.set_name(name);
    if (const auto* truth = std::get_if<bool>(&x.value))
      entry.set_truth(*truth);
    else if (const auto* integer = std::get_if<std::int64_t>(&x.value))
      entry.set_integer(*integer);
    else if (const auto* real = std::get_if<double>(&x.value))
      entry.set_real(*real);
    else if (const auto* text = std::get_if<std::string>(&x.value))
      entry.set_text(*text);
    else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&x.value))
      entry.mutable_integers()->mutable_values()->Add(integers->begin(), integers->end());
    else if (const auto* reals = std::get_if<std::vector<double>>(&x.value))
      entry.mutable_reals()->mutable_values()->Add(reals->begin(), reals->end());
    else {
      auto& texts = *entry.mutable_texts();
      for (const auto& each : std::get<std::vector<std::string>>(x.value)) texts.add_values(each);
    }
  }
}

template <class Header>
complaint parse_values(const Header& from, attributes& xs) {
  xs.clear();
  if (static_cast<std::size_t>(from.values_size()) > max_attributes) return "a message has more attributes than any node sends";
  for (const wire::Attribute& entry : from.values()) {
    if (entry.name().size() > max_attribute_name_bytes) return "an attribute has a longer name than any node sends";
    attribute x;
    switch (entry.value_case()) {
      case wire::Attribute::kTruth:
        x.value = entry.truth();
        break;
      case wire::Attribute::kInteger:
        x.value = static_cast<std::int64_t>(entry.integer());
        break;
      case wire::Attribute::kReal:
        x.value = entry.real();
        break;
      case wire::Attribute::kText:
        x.value = entry.text();
        break;
      case wire::Attribute::kIntegers:
        x.value = std::vector<std::int64_t>(entry.integers().values().begin(), entry.integers().values().end());
        break;
      case wire::Attribute::kReals:
        x.value = std::vector<double>(entry.reals().values().begin(), entry.reals().values().end());
        break;
      case wire::Attribute::kTexts:
        x.value = std::vector<std::string>(entry.texts().values().begin(), entry.texts().values().end());
        break;
      default:
        return "an attribute has no value of a type that is known here";
    }
    if (!xs.emplace(entry.name(), std::move(x)).second) return "an attribute is given twice";
  }
  return nullptr;
}

inline void put_joint(wire::Joint& to, const autograd_message& x) {
  put_context(to, x.context);
  put_message(to, x.message);
  to.mutable_requires_grad()->Add(x.requires_grad.begin(), x.requires_grad.end());
  to.mutable_place()->Add(x.place.begin(), x.place.end());
  for (const c10::Device& device : x.devices) to.add_devices(wire_number(device).value_or(~std::uint32_t{0}));
  if (x.format != wire_format::exact) to.set_format(static_cast<std::uint32_t>(x.format));
  to.set_no_grad(x.modes.no_grad);
  to.set_inference(x.modes.inference);
  for (const auto& [kind, dtype] : x.modes.autocast)
    to.add_autocast(wire_number(c10::Device(kind)).value_or(~std::uint32_t{0}) | wire_number(dtype).value_or(0xffff));
  to.set_detached(x.detached);
}

/// A newer node may name a format that this version does not know: it gets exact tensors.
inline wire_format parse_format(std::uint32_t number) { return wire_format_of(number).value_or(wire_format::exact); }

inline complaint parse_modes(const wire::Joint& from, compute_modes& x) {
  x = {from.no_grad(), from.inference(), {}};
  for (const std::uint32_t number : from.autocast()) {
    const auto device = wire_device(number & 0xffff0000);
    const auto dtype = dtype_of(number & 0xffff);
    if (!device || !dtype || !c10::isFloatingType(*dtype))
      return "autocast is on for a kind of device or a dtype that this version does not know; update this node";
    for (const autocast_mode& other : x.autocast)
      if (other.device == device->type()) return "autocast names a kind of device twice";
    x.autocast.push_back({device->type(), *dtype});
  }
  return nullptr;
}

template <class Header>
complaint parse_joint(const Header& from, autograd_message& x) {
  const wire::Joint& joint = from.joint();
  x.context = parse_context(joint);
  x.message = parse_message(joint);
  if (complaint bad = why_not_number(x.message)) return bad;
  if (joint.requires_grad_size() != 0 && joint.requires_grad_size() != from.tensors().kinds_size())
    return "requires_grad has not as many entries as there are tensors";
  if (joint.devices_size() != 0 && joint.devices_size() != from.tensors().kinds_size())
    return "devices has not as many entries as there are tensors";
  x.devices.clear();
  x.devices.reserve(static_cast<std::size_t>(joint.devices_size()));
  for (const std::uint32_t number : joint.devices()) {
    const auto device = wire_device(number);
    if (!device) return "a tensor is for a kind of device that this version does not know; update this node";
    x.devices.push_back(*device);
  }
  x.requires_grad.assign(joint.requires_grad().begin(), joint.requires_grad().end());
  x.place.assign(joint.place().begin(), joint.place().end());
  x.format = parse_format(joint.format());
  x.detached = joint.detached();
  return parse_modes(joint, x.modes);
}

inline complaint parse_devices(const google::protobuf::RepeatedField<std::uint32_t>& from, std::vector<c10::Device>& xs) {
  xs.clear();
  if (static_cast<std::size_t>(from.size()) > max_devices) return "a node names more devices than any node has";
  for (const std::uint32_t number : from)
    if (const auto device = wire_device(number)) xs.push_back(*device);  // a newer node may have other kinds
  return nullptr;
}

template <class Header, class Message>
void put_address(Header& to, const Message& x) {
  to.set_name(x.name);
  to.set_id(x.id.value);
  to.set_host(x.host);
  to.set_port(x.port);
  if constexpr (requires { to.set_formats(x.formats); }) to.set_formats(x.formats);
  if constexpr (requires { to.add_devices(0U); })
    for (const c10::Device& device : x.devices)
      if (const auto number = wire_number(device)) to.add_devices(*number);
}

template <class Header, class Message>
complaint parse_address(const Header& from, Message& x) {
  if (from.port() > std::numeric_limits<std::uint16_t>::max()) return "a port is above 65535";
  x.name = from.name();
  x.id.value = from.id();
  x.host = from.host();
  x.port = static_cast<std::uint16_t>(from.port());
  if constexpr (requires { from.formats(); })
    x.formats = from.formats();
  else
    x.formats = 0;
  x.devices.clear();
  if constexpr (requires { from.devices(); })
    return parse_devices(from.devices(), x.devices);
  else
    return nullptr;
}

// Hello, Welcome, Heartbeat and HeartbeatSeen hold a bond.
template <class Header>
void put_bond(Header& to, const bond& x) {
  to.set_partings(x.partings);
  to.set_separations(x.separations);
}

template <class Header>
bond parse_bond(const Header& from) {
  return {from.partings(), from.separations()};
}

// Hello, Members and Welcome hold a list of members.
template <class Header>
void put_members(Header& to, const std::vector<member>& xs) {
  for (const member& x : xs) put_address(*to.add_members(), x);
}

template <class Header>
complaint parse_members(const Header& from, std::vector<member>& xs) {
  for (const wire::Member& entry : from.members())
    if (entry.id() == 0)  // before memory is allocated, because entries without fields cost a sender little
      return "a member of a list has no id";
  xs.clear();
  xs.reserve(static_cast<std::size_t>(from.members_size()));
  for (const wire::Member& entry : from.members())
    if (complaint bad = parse_address(entry, xs.emplace_back())) return bad;
  return nullptr;
}

// Welcome and Gossip hold news.
template <class Header>
void put_news(Header& to, const std::vector<member_news>& xs) {
  for (const member_news& x : xs) {
    auto& entry = *to.add_news();
    put_address(entry, x.who);
    entry.set_incarnation(x.incarnation);
    entry.set_state(static_cast<std::uint32_t>(x.state));
  }
}

template <class Header>
complaint parse_news(const Header& from, std::vector<member_news>& xs) {
  for (const wire::MemberNews& entry : from.news()) {
    if (entry.id() == 0) return "news is about a member without an id";  // as in parse_members
    if (entry.state() > static_cast<std::uint32_t>(member_state::left)) return "news holds a state that is unknown";
  }
  xs.clear();
  xs.reserve(static_cast<std::size_t>(from.news_size()));
  for (const wire::MemberNews& entry : from.news()) {
    auto& x = xs.emplace_back();
    if (complaint bad = parse_address(entry, x.who)) return bad;
    x.incarnation = entry.incarnation();
    x.state = static_cast<member_state>(entry.state());
  }
  return nullptr;
}

}  // namespace troupe::wire_parts
