// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/peer_messages_test.cpp, tests/actors/gate/forged_senders_test.cpp
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/actors/gate/introduced_nodes.hpp>
#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/network/broker_notes.hpp>
#include <troupe/actors/network/fragment_reader.hpp>
#include <troupe/actors/network/message_rules.hpp>
#include <troupe/actors/rights/policy.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/sender_check.hpp>
#include <troupe/messages/trailing_elements.hpp>

namespace troupe::network {

/// Checks that the messages of a connection with certificates name their true sender. The name has to be the name in the
/// certificate. The id has to be the id with which the node introduced itself, by this or another connection.
class proven_sender final : public sender_check {
 public:
  /// `policy`: what the roles of the cluster may do; lives longer than this object. Null: the node has no policy.
  proven_sender(std::shared_ptr<gate::introduced_nodes> all, certificates::identity who, const rights::policy_file* policy)
      : all_(std::move(all)), who_(std::move(who)), policy_(policy) {}

  bool introduces(const std::string& name, node_id id) override { return name == who_.node && all_->introduce(who_, id); }
  answer is(node_id id) const override {
    const auto whose = all_->find(id);
    return !whose ? answer::not_yet : whose->node == who_.node ? answer::yes : answer::no;
  }
  bool is_named(const std::string& name) const override { return name == who_.node; }
  std::string who() const override { return "node '" + who_.node + "' (role " + who_.role + ")"; }
  bool may_end(const context_id& context) const override {
    return policy_ == nullptr || policy_->now().of(who_.role).all_contexts || is(context.node) == answer::yes;
  }

 private:
  const std::shared_ptr<gate::introduced_nodes> all_;
  const certificates::identity who_;
  const rights::policy_file* const policy_;
};

/// Checks the messages of BASP (CAF's protocol between nodes) that come by one connection: whether they may come, who sent
/// them, and how much memory CAF uses because of them.
///
///   state    meaning                                                      next state
///   unknown  the node at the other end is not known; always so without    meet(): proven
///            certificates
///   proven   the connection has the certificate of a node                 none
///
///   PM-1  the broker gets no header and no payload that breaks the rules.
///   PM-2  no fragment comes before the handshake.
///   PM-3  elements trail a tensor_piece, and no other message. Elements that this node refuses are read and dropped, and their
///         memory is freed with their place.
class peer_messages {
 public:
  using outcome = fragment_reader::outcome;
  enum class state { unknown, proven };

  /// `known` lives longer than this object.
  explicit peer_messages(const gate::known_peers& known) noexcept : known_(known) {}

  /// From now on the bytes are messages of BASP. No effect after the first call. `rules`: decide which messages may come.
  /// Without rules every message may come.
  void begin(std::optional<message_rules> rules);
  /// Says which node the certificate of the other end names. Pre: nothing has come.
  void meet(certificates::identity who);
  state now() const noexcept { return sender_ ? state::proven : state::unknown; }

  /// Decides about `chunk`, the bytes that came last: the broker gets them, a fragment is stored, or they are wrong.
  outcome sort(std::vector<char>& chunk);
  /// What was wrong. Pre: sort() has returned `wrong`.
  const std::string& problem() const noexcept {
    TROUPE_EXPECT(!problem_.empty());
    return problem_;
  }
  /// Says that `bytes` bytes of a message or fragment have come. False: these are too many (see message_rules).
  bool may_hold(std::size_t bytes) noexcept { return !rules_ || rules_->may_hold(frames_.kept() + bytes); }
  fragment_reader& frames() noexcept { return frames_; }

  /// Returns the memory for the elements that trail `payload`, or no memory if none may trail it (see problem()). Pre: the
  /// state of frames() is `trailing`. Throws std::bad_alloc.
  std::span<char> place_trailing(std::span<const char> payload, const trailing_receiver* to);
  /// Where the elements that trail the last message are; nothing: none trail it. To be called once, when the broker gets the
  /// message.
  std::optional<trailing_place> take_trailing() noexcept { return std::exchange(trailing_, std::nullopt); }

  /// While the result lives, this thread reads the last message. With certificates, the message has to name the node of the
  /// certificate as its sender.
  reading_from reading() noexcept;
  /// To be called when CAF's broker has read the chunk that came last. Returns why the connection has to end; empty if the
  /// connection may go on.
  std::string was_read(caf::io::basp_broker& broker, caf::io::connection_handle by);

  /// Says that a message with this header leaves. Questions are remembered, because only the node that was asked may answer.
  void leaves(const message_head& next) {
    if (sender_ && rules_) rules_->leaves(next);
  }
  /// As broker_notes::left().
  void left(std::size_t bytes, bool is_all) noexcept { notes_.left(bytes, is_all); }

 private:
  std::string why_not(const std::vector<char>& chunk);
  void tell_whose();

  const gate::known_peers& known_;
  fragment_reader frames_;
  std::optional<message_rules> rules_;
  certificates::identity who_;  // in the state `proven`, as is sender_
  std::optional<proven_sender> sender_;
  std::optional<trailing_place> trailing_;  // of the message that comes
  broker_notes notes_;
  std::string problem_;
};

}  // namespace troupe::network
