// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/actors/network/message_head.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::network {

/// Puts together the payload of large messages that come in fragments (see write_scheduler). The broker of BASP, CAF's protocol
/// between nodes, wants a header, then the payload that the header announces. The reader looks at each header first. It stores
/// the fragments, so the broker never sees them.
///
///   state     meaning                                            next state
///   off       the bytes are not of BASP: the broker gets all     begin(): head
///   head      a header comes next                                a header without payload: head
///                                                                a header with payload: payload
///                                                                the header of a fragment: fragment
///   payload   the broker's payload comes next                    elements trail the payload: trailing
///                                                                otherwise: head
///   trailing  the elements that trail the payload come next      head
///   fragment  the payload of a fragment comes next               head
///
///   FR-1  the broker gets the bytes of all messages that write_scheduler got at the other end. A large message takes the place
///         of its last fragment in the order.
///   FR-2  fragments take memory only for bytes that have come.
///   FR-3  a fragment is wrong if it has more than `write_scheduler::fragment_bytes` bytes, or makes a payload longer than a
///         header can announce. A message is wrong if its fragments are missing, hold its whole payload, or leave more of it
///         than one fragment may have. The broker gets nothing of a wrong message.
///   FR-4  the broker gets a payload with trailing elements once the elements have come. The payload stays in the chunk until
///         then.
class fragment_reader {
 public:
  enum class outcome { for_broker, kept, wrong };
  enum class state { off, head, payload, trailing, fragment };

  /// From now on the bytes are messages of BASP. No effect after the first call.
  void begin() noexcept;
  state now() const noexcept { return state_; }
  /// Decides about `chunk`, the bytes that came last: the broker gets them (`for_broker`), the broker gets them later (`kept`),
  /// or they break a rule (`wrong`).
  outcome sort(std::vector<char>& chunk);
  /// How many messages with trailing elements have come since the last payload without.
  std::uint32_t trailed_in_row() const noexcept { return trailed_in_row_; }
  /// How many bytes of fragments the reader stores.
  std::size_t kept() const noexcept { return ahead_.size(); }
  /// The header of the message whose fragments come now; before the first message, a header of zeros.
  const message_head& head() const noexcept { return head_; }
  /// What was wrong. Pre: sort() has returned `wrong`.
  const std::string& problem() const noexcept {
    TROUPE_EXPECT(!problem_.empty());
    return problem_;
  }
  /// Whether the next bytes are of a fragment, or of a payload whose first bytes came in fragments.
  bool has_wish() const noexcept { return state_ == state::fragment || ahead_of_payload_; }
  /// Puts the bytes that came in fragments at the beginning of `chunk`, and makes space behind them for the bytes that come
  /// next. Returns how many bytes came in fragments. Pre: has_wish().
  std::size_t prepare(std::vector<char>& chunk);
  /// Whether the other end has said that it reads fragments.
  bool other_end_reads() const noexcept { return other_end_reads_; }
  /// Whether the other end has said that it reads trailing elements.
  bool other_end_reads_trailing() const noexcept { return other_end_reads_trailing_; }

 private:
  outcome sort_head(char* head);
  outcome wrong(std::string why);

  state state_ = state::off;
  std::string problem_;
  message_head head_;
  std::uint32_t trailed_in_row_ = 0;
  std::uint32_t next_ = 0;         // bytes of the fragment or payload that comes next
  bool ahead_of_payload_ = false;  // the payload that comes next begins with ahead_
  std::vector<char> ahead_;        // bytes that came in fragments
  bool other_end_reads_ = false;
  bool other_end_reads_trailing_ = false;
};

}  // namespace troupe::network
