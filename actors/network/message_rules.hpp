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

/// Which messages of BASP, CAF's protocol between nodes, may come by a connection. CAF trusts each message: some headers of 32
/// bytes end the process, others make CAF pass messages on, start actors or change its configuration. If CAF passes a message
/// on, the next node takes it for a message of this node. When an actor of another node links to an actor of this node, or
/// unlinks from it, CAF at the other node sends a message in the name of the actor of this node (BR-5, BR-12).
///   BR-1  the handshake of the other end comes first, and once; a caller that has two connections may repeat its handshake
///         once, on the connection that it chooses.
///   BR-2  after the handshake come only messages to an actor by the actor's number, news of monitored actors, and heartbeats.
///         CAF's question for a service of CAF may come too, at most `most_for_service` times. Without certificates, a message
///         may be from a third node: an answer may take the same way as its question.
///   BR-3  a message has a payload if its kind needs one, and none otherwise. Only a message to an actor may have a payload of
///         more than `most_small` bytes.
///   BR-4  messages within messages nest at most `most_nested` deep: CAF reads an inner message while it reads the outer one,
///         and the stack is finite.
///   BR-5  with certificates, each message, and each report that an actor has ended, is for this node and from the node of the
///         certificate (see node_ids). Only the message by which an actor links (BR-12) names this node as its sender. This
///         node passes nothing on to other nodes.
///   BR-6  the actors that a node is made of (own_actors) get only answers. The gateway also gets messages with one struct of
///         troupe each, and questions about its status and about published actors. Messages that end an actor, or that only
///         actors of one node send each other, are refused.
///   BR-7  a role without the right to actors sends messages to the actors that a node is made of, answers to any actor, and
///         one answer to CAF's own question after the handshake. Other messages are refused before CAF reads their values, and
///         by their header if they are larger than that answer.
///   BR-8  a message that is marked as part of a stream of CAF has the one type that CAF sends in a stream, and is no answer.
///         It is not for the actors that a node is made of.
///   BR-9  with certificates, an answer comes from the node that was asked, once for each question (see open_questions).
///   BR-10 with certificates, a message is for the actor that it names, and not to be passed on to further actors. An answer
///         with another type than one of troupe's has at most `most_answer` bytes, unless the policy gives the role of the
///         other end the right to actors.
///   BR-11 with certificates, messages, and the reasons why actors have ended, are as CAF writes them and hold only values that
///         nodes send (see message_values). Answers to the actors that a node is made of hold only types with which nodes
///         answer. A role without the right to actors sends no types of the user's program, and names at most one actor, which
///         is of one of the two nodes.
///   BR-12 with certificates, only an actor of the other end can link to an actor of this node, or unlink from it, and only by
///         CAF's message for this. No actor of another node links to an actor that this node is made of.
///   BR-13 a policy that is read again counts on open connections too, from the next header or payload that is checked. One
///         payload is checked by one policy.
class message_rules {
 public:
  static constexpr std::size_t most_small = std::size_t{64} << 10;
  static constexpr std::size_t most_nested = 64;
  static constexpr std::size_t most_answer = std::size_t{64} << 10;
  /// CAF asks once after each handshake.
  static constexpr int most_for_service = 8;

  /// Which handshakes of the other end have come:
  ///
  ///   state    meaning                                  next state
  ///   waiting  the handshake may come, nothing else     its header: met
  ///   met      messages may come                        a caller's second header that chooses this connection: chosen
  ///   chosen   messages may come                        none
  enum class state { waiting, met, chosen };

  /// `which`: the end of the connection that this process has. `own`: the actors for which BR-6 counts; null: none.
  explicit message_rules(gate::end which, std::shared_ptr<const gate::own_actors> own = nullptr) noexcept
      : which_(which), own_(std::move(own)) {}

  /// Says which certificate the other end has. From now on the connection counts for NI-3 of node_ids. Without this call the
  /// connection is one without certificates. `all` has the id of this process. `policy`: see BR-7 and BR-13; null: every role
  /// has the right to actors. Pre: it is called once, and nothing has come.
  void meet(std::shared_ptr<gate::node_ids> all, certificates::identity who, const rights::policy_file* policy = nullptr);
  /// Says that a message with this header leaves by the connection.
  void leaves(const message_head& next);
  /// Why the message with this header may not come next; empty if it may.
  std::string why_not(const message_head& next);
  /// Why the payload of the last message may not come; empty if it may.
  std::string why_not(std::span<const char> payload);
  /// Says how many bytes of a message, or of fragments of a message, have come and are not with CAF yet. False: the connections
  /// of the certificate have too many such bytes (NI-3 of node_ids).
  bool may_hold(std::size_t unfinished) noexcept { return !proof_ || proof_->unfinished->has(unfinished); }
  state now() const noexcept { return state_; }
  /// How many bytes the answer to the last message is expected to take; 0 if another limit counts the answer (BN-4 of
  /// broker_notes).
  std::size_t owed() const noexcept { return owed_; }

 private:
  static constexpr std::size_t owed_for_monitor = 64;  // the news that the monitored actor has ended
  static constexpr std::size_t owed_for_request = 128;
  static constexpr std::size_t owed_for_status = std::size_t{32} << 10;

  /// The receiver of a message. `asker`: the actor of CAF in this process that waits for the answer of the other end's service
  /// (BR-2).
  enum class receiver { program, asker, service, gateway, inner };
  /// CAF's own question for the service of the other end (BR-2).
  enum class question { none, open, answered };
  /// What is known of the other end of a connection with certificates.
  struct proof {
    std::shared_ptr<gate::node_ids> ids;
    certificates::identity who;
    const rights::policy_file* policy;
    gate::node_ids::place place;  // null: the certificate has too many connections
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
  // Of the message that came last:
  message_head last_;
  receiver to_ = receiver::program;
  std::size_t owed_ = 0;
  bool is_walked_ = false;  // whether all its values were walked through
};

}  // namespace troupe::network
