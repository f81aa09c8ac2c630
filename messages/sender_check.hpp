// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/ids.hpp>

namespace troupe {

/// Interface of a connection: says whether a message on this connection names its true sender. The other end is the process to
/// which the connection leads.
class sender_check {
 public:
  /// `not_yet`: no node has introduced itself with this id so far, because a message may overtake the introduction of its
  /// sender.
  enum class answer { yes, no, not_yet };

  /// To be called when the other end introduces itself with this name and id. Returns false if the other end is not that node.
  virtual bool introduces(const std::string& name, node_id id) = 0;
  /// Whether the other end has introduced itself with this id.
  virtual answer is(node_id id) const = 0;
  virtual bool is_named(const std::string& name) const = 0;
  /// Returns who the other end is, for errors: "node 'b' (role member)".
  virtual std::string who() const = 0;
  /// Whether the other end may release the context and abort its passes. The other end may always end a context that it has
  /// opened.
  virtual bool may_end(const context_id& context) const = 0;

 protected:
  ~sender_check() = default;
};

/// Identifies the message that a thread reads: the id of the sending actor, and the number of the message in the receiver's
/// mailbox. Both are CAF's numbers, or 0 if they are not known.
struct message_key {
  std::uint64_t source = 0;
  std::uint64_t message = 0;
  bool operator==(const message_key&) const = default;
};

/// Sets, until the end of the scope, from which connection this thread reads messages. With null, the sender of a message is
/// not checked. A message that names another sender than the other end of `who` can't be read (errc::refused;
/// errc::unknown_peer for `not_yet`).
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
