// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_rules_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/gate/node_ids.hpp>
#include <troupe/actors/gate/refusal.hpp>
#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/network/message_values.hpp>
#include <troupe/actors/rights/policy.hpp>

namespace troupe::network {

/// Decides which messages of BASP, CAF's protocol between nodes, may come by a connection. CAF trusts every message. Some
/// headers of 32 bytes end the process. Others make CAF forward messages, start actors or change its configuration. A node that
/// gets a forwarded message takes it for a message of the node that forwarded it. CAF at another node sends a message when one
/// of its actors links to an actor of this node, or unlinks from it. This message names the actor of this node as its sender
/// (BR-5, BR-12).
///   BR-1  the handshake of the other end comes first, and once. A calling end that has two connections may repeat its
///         handshake once, on the connection that it chooses.
///   BR-2  after the handshake come only heartbeats, messages to actors by their numbers, requests to monitor an actor, and
///         reports that an actor has ended. CAF's question for a service of CAF may come too, at most `most_for_service` times.
///         Without certificates a message may come from a third node, because an answer may take the same way as its question.
///   BR-3  a message has a payload if its kind needs one, and none otherwise. Only a message to an actor may have a payload of
///         more than `most_small` bytes.
///   BR-4  messages within messages nest at most `most_nested` deep. CAF reads an inner message while it reads the outer one,
///         and the stack is finite.
///   BR-5  with certificates, each message is from the node of the certificate to this node (see node_ids), also the report
///         that an actor has ended. So this node forwards nothing to other nodes. Only the message by which an actor links or
///         unlinks (BR-12) names this node as its sender.
///   BR-6  the actors that a node is made of (own_actors) get only answers. The gateway also gets messages with one struct of
///         troupe each, and questions about its status and about published actors. So messages that end an actor, or that only
///         actors of one node send each other, are refused.
///   BR-7  a role without the right to actors may send messages to the actors that a node is made of, answers, and one answer
///         to CAF's question after the handshake. Other messages are refused before CAF reads their values. If a message to an
///         actor of a program is larger than the answer to CAF's question can be, its header is refused.
///   BR-8  a message that is marked as part of a stream of CAF has the one type that CAF sends in a stream. It is no answer,
///         and not for the actors that a node is made of.
///   BR-9  with certificates, an answer comes from the node that was asked, once for each question (see open_questions).
///   BR-10 with certificates, a message names no further actors to which it has to be passed on. An answer whose type is none
///         of troupe's has at most `most_answer` bytes, unless the other end's role has the right to actors.
///   BR-11 with certificates, messages and the reasons why actors have ended are as CAF writes them, and hold only values that
///         nodes send (see message_values). Answers to the actors that a node is made of hold only types with which nodes
///         answer. A role without the right to actors sends no types of the user's program, and names at most one actor, of
///         either node.
///   BR-12 with certificates, only an actor of the other end can link to an actor of this node or unlink from it, by CAF's
///         message for this. No actor of another node links to an actor that this node is made of.
///   BR-13 if the policy's file is read again, the new policy holds for open connections too, from the next header or payload.
///         One payload is checked by one policy.
class message_rules {
 public:
  static constexpr std::size_t most_small = std::size_t{64} << 10;
  static constexpr std::size_t most_nested = 64;
  static constexpr std::size_t most_answer = std::size_t{64} << 10;
  /// The most messages to a service of CAF that may come (BR-2). CAF sends one after each handshake.
  static constexpr int most_for_service = 8;

  /// Which handshakes of the other end have come:
  ///
  ///   state    meaning                                  next state
  ///   waiting  the handshake may come, nothing else     its header: met
  ///   met      messages may come                        a caller's second header that chooses this connection: chosen
  ///   chosen   messages may come                        none
  enum class state { waiting, met, chosen };

  /// `which`: the end of the connection that this process has. `own`: the actors that this node is made of (BR-6); null: none.
  explicit message_rules(gate::end which, std::shared_ptr<const gate::own_actors> own = nullptr) noexcept
      : which_(which), own_(std::move(own)) {}

  /// Says which certificate the other end has. From now on the connection counts for NI-3 of node_ids. Without this call, the
  /// rules for connections without certificates hold. `all` has the id of this process. `policy`: see BR-7 and BR-13; null:
  /// every role has the right to actors. Pre: it is called once, and nothing has come.
  void meet(std::shared_ptr<gate::node_ids> all, certificates::identity who, const rights::policy_file* policy = nullptr);
  /// Says that a message with this header leaves by the connection.
  void leaves(const message_head& next);
  /// Why the message with this header may not come next; empty if it may.
  std::string why_not(const message_head& next);
  /// Why the payload of the last message may not come; empty if it may.
  std::string why_not(std::span<const char> payload);
  /// Says how many bytes of an incomplete message, or of its fragments, have come. Returns false if the connections of the
  /// certificate have too many such bytes (NI-3 of node_ids).
  bool may_hold(std::size_t unfinished) noexcept { return !proof_ || proof_->unfinished->has(unfinished); }
  state now() const noexcept { return state_; }
  /// How many bytes the answer to the last message is expected to take; 0 if another limit counts the answer (BN-4 of
  /// broker_notes).
  std::size_t owed() const noexcept { return owed_; }

 private:
  static constexpr std::size_t reason_bytes = 15;  // why an actor has ended, without a text
  // The news that the monitored actor has ended.
  static constexpr std::size_t owed_for_monitor = message_head::bytes + 2 * message_outline::node_bytes + reason_bytes;
  static constexpr std::size_t owed_for_request = 128;
  static constexpr std::size_t owed_for_status = std::size_t{32} << 10;

  /// The receiver of a message. `program`: an actor of the user's program. `asker`: the actor of CAF in this process that waits
  /// for the answer of the other end's service (BR-2). `service`: a service of CAF. `gateway`, `inner`: see own_actors.
  enum class receiver { program, asker, service, gateway, inner };
  /// Whether this process's CAF has asked for the service of the other end (BR-2), and whether the answer has come.
  enum class question { none, open, answered };
  /// What is known of the other end of a connection with certificates.
  struct proof {
    std::shared_ptr<gate::node_ids> ids;
    certificates::identity who;
    const rights::policy_file* policy;
    gate::node_ids::connection_count count;  // null: the certificate has too many connections
    std::shared_ptr<gate::node_ids::unfinished_message> unfinished;
    gate::node_ids::hold own_id{};             // once the handshake has come
    const rights::policy* looked_at{nullptr};  // the policy from which may_use_actors was read
    bool may_use_actors = true;
  };

  void look_at_policy();
  bool may_use_actors() const noexcept { return !proof_ || proof_->may_use_actors; }
  receiver receiver_of(const message_head& next) const;
  bool is_for_node() const noexcept { return to_ == receiver::gateway || to_ == receiver::inner; }
  bool is_for_program() const noexcept;
  std::string why_not_read(std::string_view bytes, const std::optional<message_outline>& outline);
  std::string why_not_hold(const message_values& values);
  std::string not_for_program() const;
  bool may_link(std::string_view bytes, const message_outline& outline) const;
  std::string why_not_for_actor(std::string_view bytes, const std::optional<message_outline>& outline);

  gate::end which_;
  std::shared_ptr<const gate::own_actors> own_;
  std::optional<proof> proof_;  // with certificates
  state state_ = state::waiting;
  std::string handshake_;  // payload of the first handshake
  question asked_ = question::none;
  std::uint64_t asker_ = 0;  // CAF's actor that has asked last for the service
  int for_service_ = 0;      // messages to CAF's service so far
  // Facts about the message that came last:
  message_head last_;
  receiver to_ = receiver::program;
  std::size_t owed_ = 0;
  bool is_walked_ = false;  // whether message_values has checked all its values
};

}  // namespace troupe::network
