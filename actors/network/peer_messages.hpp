// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/actors/network/broker_notes.hpp>
#include <troupe/actors/network/fragment_reader.hpp>
#include <troupe/actors/network/known_peers.hpp>
#include <troupe/actors/network/message_rules.hpp>
#include <troupe/actors/network/proven_sender.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/sender_check.hpp>

namespace troupe::network {

/// The messages of BASP that come by one connection: the rules for them, who they are from, and what CAF keeps because of them.
///
///   state    meaning                                                      next state
///   unknown  it is not known whose the connection is; always so without   meet(): proven
///            certificates
///   proven   the connection has the certificate of a node                 none
///
///   PM-1  a header or a payload that breaks the rules is not for the broker.
///   PM-2  no fragment comes before the handshake.
class peer_messages {
 public:
  using outcome = fragment_reader::outcome;
  enum class state { unknown, proven };

  /// `known` lives longer.
  explicit peer_messages(const known_peers& known) noexcept : known_(known) {}

  /// From now on the bytes are messages of BASP. No effect after the first call. `rules`: those of the messages; without them every
  /// message is fine.
  void begin(std::optional<message_rules> rules);
  /// Says whose the connection is. Pre: nothing has come.
  void meet(certificates::identity who);
  state now() const noexcept { return sender_ ? state::proven : state::unknown; }

  /// Sorts `part`, which has come: the broker gets it, a fragment is kept, or it is wrong.
  outcome sort(std::vector<char>& part);
  /// What was wrong. Pre: sort() has returned `wrong`.
  const std::string& problem() const noexcept {
    TROUPE_EXPECT(!problem_.empty());
    return problem_;
  }
  /// Says that the message, or fragment, that comes has so many bytes by now. False: there are too many (see message_rules).
  bool may_hold(std::size_t bytes) noexcept { return !rules_ || rules_->may_hold(frames_.kept() + bytes); }
  fragment_reader& frames() noexcept { return frames_; }

  /// While the result lives, this thread reads the message that came last, in the name of the node of the certificate.
  reading_from reading() noexcept;
  /// CAF's broker has read the part that came last. Returns why the connection has to end; empty if it may go on.
  std::string was_read(caf::io::basp_broker& broker, caf::io::connection_handle by);

  /// Says that a message with this header leaves: only the node that is asked may answer.
  void leaves(const message_head& next) {
    if (sender_ && rules_) rules_->leaves(next);
  }
  /// As broker_notes::left().
  void left(std::size_t bytes, bool is_all) noexcept { notes_.left(bytes, is_all); }

 private:
  std::string why_not(const std::vector<char>& part);
  void tell_whose();

  const known_peers& known_;
  fragment_reader frames_;
  std::optional<message_rules> rules_;
  certificates::identity who_;  // in the state `proven`, as is sender_
  std::optional<proven_sender> sender_;
  broker_notes notes_;
  std::string problem_;
};

}  // namespace troupe::network
