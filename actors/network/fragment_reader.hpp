// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/actors/network/message_head.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::network {

/// Puts together the payload of large messages that come in fragments (see write_lanes). BASP's broker wants a header, then the
/// payload that the header announces. The reader looks at each header first: it keeps fragments, and the broker never sees
/// them.
///
///   state     meaning                                            next state
///   off       the bytes are not of BASP: the broker gets all     begin(): head
///   head      a header comes next                                a header without payload, or of the broker's: head
///                                                                a header with payload: payload
///                                                                the header of a fragment: fragment
///   payload   the broker's payload comes next                    head
///   fragment  the payload of a fragment comes next               head
///
///   FR-1  the broker gets the bytes that write_lanes got at the other end, message by message; a large message comes in the
///         place of its last fragment.
///   FR-2  fragments take memory only for bytes that have come.
///   FR-3  a fragment is wrong that is larger than those of write_lanes, or makes a payload longer than a header can announce.
///         A message is wrong if its fragments are missing, hold its whole payload or more, or leave more of the payload than
///         one fragment may hold. The broker gets nothing of a wrong message.
class fragment_reader {
 public:
  enum class outcome { for_broker, kept, wrong };
  enum class state { off, head, payload, fragment };

  /// From now on the bytes are messages of BASP. No effect after the first call.
  void begin() noexcept;
  state now() const noexcept { return state_; }
  /// Sorts `part`, which has come: the broker gets it, the reader keeps it, or it is wrong.
  outcome sort(std::vector<char>& part);
  /// Bytes of fragments that are kept.
  std::size_t kept() const noexcept { return ahead_.size(); }
  /// The head of the message whose parts come now; empty before the first one.
  const message_head& head() const noexcept { return head_; }
  /// What was wrong. Pre: sort() has returned `wrong`.
  const std::string& problem() const noexcept {
    TROUPE_EXPECT(!problem_.empty());
    return problem_;
  }
  /// Whether the next bytes are for the reader, or begin with bytes that the reader has.
  bool has_wish() const noexcept { return state_ == state::fragment || ahead_of_payload_; }
  /// Makes `part` as large as the bytes that come next, and puts the bytes that the reader has at its beginning. Returns how
  /// many these are. Pre: has_wish().
  std::size_t prepare(std::vector<char>& part);
  /// Whether the other end has said that it reads fragments.
  bool other_end_reads() const noexcept { return other_end_reads_; }

 private:
  outcome sort_head(char* head);
  outcome wrong(std::string why);

  state state_ = state::off;
  std::string problem_;
  message_head head_;
  std::uint32_t next_ = 0;         // bytes of the fragment or payload that comes next
  bool ahead_of_payload_ = false;  // the payload that comes next begins with ahead_
  std::vector<char> ahead_;        // from fragments
  bool other_end_reads_ = false;
};

}  // namespace troupe::network
