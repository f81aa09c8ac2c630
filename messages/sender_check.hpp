// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/ids.hpp>

namespace troupe {

/// Knows who is at the other end of a connection, and checks the sender that a message on this connection names.
class sender_check {
 public:
  /// `not_yet`: nobody has introduced itself with this id. A message may overtake the introduction of its sender.
  enum class answer { yes, no, not_yet };

  /// To be called when the other end introduces itself with this name and id. False: the other end is not that node.
  virtual bool introduces(const std::string& name, node_id id) = 0;
  /// Whether the other end has introduced itself with this id.
  virtual answer is(node_id id) const = 0;
  virtual bool is_named(const std::string& name) const = 0;
  /// Who the other end is, for errors: "node 'b' (role member)".
  virtual std::string who() const = 0;
  /// Whether the other end may release the context and abort its passes. The other end may always end a context that it has
  /// opened.
  virtual bool may_end(const context_id& context) const = 0;

 protected:
  ~sender_check() = default;
};

/// Which message a thread reads, as CAF numbers it: the id of the sending actor, and the number that the receiver finds in its
/// mailbox. Both are 0 where nothing is known of the message.
struct message_key {
  std::uint64_t source = 0;
  std::uint64_t message = 0;
  bool operator==(const message_key&) const = default;
};

/// While this object lives, the message that this thread reads comes from `who`; null: from anybody. A message that names
/// another sender can't be read (errc::refused; errc::unknown_peer for `not_yet`).
class reading_from {
 public:
  explicit reading_from(sender_check* who, message_key which = {}) noexcept;
  ~reading_from();
  reading_from(const reading_from&) = delete;
  reading_from& operator=(const reading_from&) = delete;

  static sender_check* current() noexcept;
  static message_key message() noexcept;

 private:
  sender_check* before_;
  message_key message_before_;
};

}  // namespace troupe
