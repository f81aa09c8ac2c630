// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Small types for ids, so that ids of different kinds can't be mixed up. Every folder may include this header.
namespace troupe {

/// One node of the cluster. The id is drawn at random when the node starts, so a restarted node has another id. 0 is no node.
struct node_id {
  std::uint64_t value = 0;
  auto operator<=>(const node_id&) const = default;
};

/// A distributed autograd context: the node that opened it, and a number that counts the contexts of that node. Number 0 is no
/// context.
struct context_id {
  node_id node;
  std::uint64_t number = 0;
  explicit operator bool() const noexcept { return number != 0; }
  auto operator<=>(const context_id&) const = default;
};

/// A message that joins two graphs: the node that sent it, and the Lamport clock of that node at that time. A message that was
/// sent because of another message has the higher number.
struct message_id {
  std::uint64_t number = 0;
  node_id node;
  auto operator<=>(const message_id&) const = default;
};

/// No node sends this many messages. A message with a higher number is refused.
inline constexpr std::uint64_t highest_message_number = std::uint64_t{1} << 63;

/// Where in a context's program something happens; the same on every run. The place of a call has the place of its caller, then
/// two numbers: how many functions the calling thread had recorded, and the number of the call. Places compare
/// lexicographically. The context's own thread has the empty place.
using program_place = std::vector<std::uint64_t>;

/// A backward pass of a context, counted from 1.
struct pass_number {
  std::uint64_t value = 0;
  auto operator<=>(const pass_number&) const = default;
};

/// An object (a module, an optimizer) that lives on a node. Number 0 is no object.
struct object_id {
  node_id node;
  std::uint64_t number = 0;
  explicit operator bool() const noexcept { return number != 0; }
  auto operator<=>(const object_id&) const = default;
};

std::string to_string(node_id id);
std::string to_string(const context_id& id);
std::string to_string(const message_id& id);
std::string to_string(const object_id& id);

/// Mixes the words of an id into one hash.
inline std::size_t hash_words(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t h = (a ^ (b * 0x9e3779b97f4a7c15ULL)) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<std::size_t>(h ^ (h >> 31));
}

}  // namespace troupe

template <>
struct std::hash<troupe::node_id> {
  std::size_t operator()(const troupe::node_id& id) const noexcept { return troupe::hash_words(id.value, 0); }
};
template <>
struct std::hash<troupe::context_id> {
  std::size_t operator()(const troupe::context_id& id) const noexcept { return troupe::hash_words(id.node.value, id.number); }
};
template <>
struct std::hash<troupe::message_id> {
  std::size_t operator()(const troupe::message_id& id) const noexcept { return troupe::hash_words(id.node.value, id.number); }
};
template <>
struct std::hash<troupe::object_id> {
  std::size_t operator()(const troupe::object_id& id) const noexcept { return troupe::hash_words(id.node.value, id.number); }
};
