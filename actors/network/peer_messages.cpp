// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/peer_messages.hpp>

#include <utility>

#include <caf/io/basp/message_type.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/message_id.hpp>

#include <troupe/messages/expect.hpp>

namespace troupe::network {

/// How CAF names the type of the only message that elements may trail.
constexpr std::string_view types_of_piece = "@<>+troupe.piece";

void peer_messages::begin(std::optional<message_rules> rules) {
  if (frames_.now() != fragment_reader::state::off) return;
  frames_.begin();
  rules_ = std::move(rules);
  if (sender_) tell_whose();
}

void peer_messages::meet(certificates::identity who) {
  TROUPE_EXPECT(!sender_);
  who_ = std::move(who);
  sender_.emplace(known_.introduced, who_, known_.policy.get());
  tell_whose();
}

void peer_messages::tell_whose() {
  if (rules_) rules_->meet(known_.ids, who_, known_.policy.get());
}

/// Why the chunk may not come; empty if it may.
std::string peer_messages::why_not(const std::vector<char>& chunk) {
  using state = fragment_reader::state;
  if (!rules_) return {};
  if (frames_.now() == state::payload) return rules_->why_not(chunk);
  if (frames_.now() != state::head || chunk.size() != message_head::bytes) return {};
  const auto head = message_head::read(chunk.data());
  if (head.operation != message_head::fragment) return rules_->why_not(head);
  return rules_->now() == message_rules::state::waiting ? "a fragment before its handshake" : "";
}

peer_messages::outcome peer_messages::sort(std::vector<char>& chunk) {
  problem_ = why_not(chunk);
  if (!problem_.empty()) return outcome::wrong;
  const auto result = frames_.sort(chunk);
  if (result == outcome::wrong) problem_ = frames_.problem();
  return result;
}

std::span<char> peer_messages::place_trailing(std::span<const char> payload, const trailing_receiver* to) {
  TROUPE_EXPECT(frames_.now() == fragment_reader::state::trailing);
  const bool is_routed = frames_.head().operation == static_cast<std::uint8_t>(caf::io::basp::message_type::routed_message);
  const auto outline = outline_of({payload.data(), payload.size()}, is_routed);
  const auto sender = reading();
  if (to != nullptr && outline && outline->types == types_of_piece) trailing_ = to->place_of_trailing(outline->values);
  if (!trailing_) {
    problem_ = "elements that trail no piece of a tensor";
    return {};
  }
  if (trailing_->refusal == nullptr) return trailing_->memory;
  const auto dropped = std::make_shared<std::vector<char>>(trailing_->bytes);
  trailing_->owner = dropped;
  return *dropped;
}

reading_from peer_messages::reading() noexcept {
  const auto& head = frames_.head();
  return reading_from(sender_ ? &*sender_ : nullptr, {head.source, caf::make_message_id(head.message).integer_value()});
}

std::string peer_messages::was_read(caf::io::basp_broker& broker, caf::io::connection_handle by) {
  const bool is_whole = frames_.now() == fragment_reader::state::head;  // only complete messages are answered
  return sender_ ? notes_.read(broker, by, rules_ && is_whole ? rules_->owed() : 0) : std::string();
}

}  // namespace troupe::network
