// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include <troupe/actors/transfers/piece_window.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::transfers {

/// A large tensor, or a large component of a sparse one, that leaves ahead of its message.
struct transfer {
  std::uint64_t number;
  std::uint64_t bytes;
  bool on_device = false;  // its elements are in a device's memory
  int device = 0;          // the index of this device
  bool comes = false;      // its elements are still copied to the host
};

// Events.
struct shipment_begun {  // a message has to leave for the node, and these transfers ahead of it
  node_id to;
  std::vector<transfer> ahead;
  std::uint64_t message;
  bool may_read;  // whether the node may read this process's memory, if it draws a mark
};
struct mark_drawn {
  node_id by;
  std::uint64_t at_once = 0;  // memory_mark::read_at_once
  bool devices_only = false;  // whether this node offers nothing of the host
};
struct piece_answered {
  node_id by;
  std::uint64_t piece;
  std::optional<std::int64_t> taken_ns;  // by the clock of that node; nothing: it said no time, or refused the piece
};
struct offer_answered {
  // unreadable: the node can read none of this process's memory; of a transfer on a device: no memory of its devices
  enum class answer { taken, refused, unreadable };
  node_id by;
  std::uint64_t transfer;
  answer how;
};
struct copied_to_host {
  node_id to;
  std::uint64_t transfer;
  std::optional<error> failure;
};
struct elements_came {  // of a transfer that comes
  node_id to;
  std::uint64_t transfer;
  std::uint64_t end;  // in bytes: all before are there
  std::optional<error> failure;
};
struct receiver_down {
  node_id who;
};
using shipping_event =
  std::variant<shipment_begun, mark_drawn, piece_answered, offer_answered, copied_to_host, elements_came, receiver_down>;

// Effects, which the desk has to carry out.
struct ask_for_mark {
  node_id of;
};
struct transfer_section {
  node_id to;
  std::uint64_t transfer;
  std::uint64_t total;  // bytes of the transfer
  std::uint64_t offset;
  std::uint64_t bytes;
};
struct send_piece : transfer_section {  // piece_answered follows, unless the node goes down
  std::uint64_t piece;
};
struct send_offer : transfer_section {};  // offer_answered follows, unless the node goes down
struct copy_to_host {                     // copied_to_host follows, unless the node goes down
  node_id to;
  std::uint64_t transfer;
};
struct send_message {
  std::uint64_t message;
};
struct drop_message {
  std::uint64_t message;
};
struct fail_message {  // what belongs to the message leaves no more, because elements could not be copied to the host
  node_id to;
  std::uint64_t message;
  error why;
};
struct let_go {  // this node does not need the elements of the transfer any more
  std::uint64_t transfer;
};
using shipping_effect =
  std::variant<ask_for_mark, send_piece, send_offer, copy_to_host, send_message, drop_message, fail_message, let_go>;

/// Decides which pieces of large tensors leave for which node, and when. The elements leave in pieces, or are offered in pieces
/// to a node that reads them out of this process's memory. So sender and receiver work at the same time, each on bytes that are
/// in its cache, and small messages leave between two pieces. Holds no tensor, sends nothing and reads no clock.
///
///   memory of a receiver   meaning                                    next state
///   unknown                the receiver was not asked                 shipment_begun, if the receiver may read: asked
///   asked                  transfers that begin leave in pieces       mark_drawn: reads, or can_not (devices_only)
///   reads                  transfers that begin are offered           offer_answered (unreadable): can_not
///   can_not                transfers leave in pieces
///
/// A receiver that has drawn a mark reads devices, even if it can't read the host, until it refuses an offer of a device as
/// unreadable.
///
///   transfer               next state
///   waits                  in its turn: offers, if the receiver reads; otherwise pieces. On a device: offers, if the receiver
///                          reads devices; otherwise host
///   host                   in its turn: copies
///   copies                 copied_to_host: waits, and is on no device any more. If the copy has failed, its message fails
///   pieces                 let go of when its last piece has left
///   offers                 its last offer was taken: let go of
///                          its message leaves before the answer (OP-1): offered
///                          offer_answered (refused): refused; if it was unreadable, all transfers in `offers` are refused
///   offered                its offer is answered, in whatever way: let go of
///   refused                when all its offers are answered: pieces, from its first byte on. On a device: host
///   any, and its message   let go of, when no offer of it and no copy waits for an answer
///   has failed
///
///   OP-1  a message leaves once: after its last piece has left or, if the pieces were offered, after the receiver has taken
///         the last offer. If the receiver has taken the offer that it answered last, the message does not wait for the answer
///         to an offer with a whole transfer of at most `at_once` bytes of the host. Messages to a node leave in the order of
///         shipment_begun, but a message with a transfer that is still on a device, or still comes, holds up no other.
///   OP-2  a piece leaves while the pieces without an answer have fewer bytes than the window of the receiver. An offer leaves
///         while fewer than `most_offers` offers of the host have no answer; for an offer on a device, offers on this device.
///         So a late device holds up no transfer but its own. A transfer is copied to the host
///         while fewer than `most_copies` copies of its receiver and device run.
///   OP-3  offered elements stay in memory until all offers of their transfer are answered, or the receiver is down.
///   OP-4  each node is asked for a mark once, until it goes down. After an offer was unreadable no offer of its
///         kind (of the host, or of devices) leaves for the node.
///   OP-5  an answer that comes after its receiver went down changes nothing.
///   OP-6  a transfer on a device is offered as a whole, and leaves in pieces only after it was copied to the host.
///   OP-7  if a copy to the host fails, its message fails at once and never leaves, and nothing more of its transfers leaves.
///   OP-8  of a transfer whose elements still come, no byte leaves that is not there.
class shipments {
 public:
  using effects = std::vector<shipping_effect>;
  static constexpr std::uint64_t offer_bytes = std::uint64_t{4} << 20;
  static constexpr int most_offers = 4;
  static constexpr int most_copies = 4;

  /// Handles one event. Returns the effects in the order in which the desk has to carry them out.
  effects on(const shipping_event& event, std::int64_t now_ns);
  /// Whether nothing waits to leave for any node, or for an answer.
  bool is_idle() const;

 private:
  enum class memory { unknown, asked, reads, can_not };
  enum class way { waits, host, copies, pieces, offers, refused };
  struct queued_transfer {
    transfer what;
    way how = way::waits;
    std::uint64_t offset = 0;                           // where the next piece begins
    std::uint64_t there = what.comes ? 0 : what.bytes;  // bytes that have come to the host; all, if the transfer is on a device
    int offered = 0;                                    // number of offers without an answer

    bool all_left() const { return offset == what.bytes; }
    bool is_late() const { return what.on_device || there < what.bytes; }
  };
  struct message {
    std::uint64_t number;
  };
  struct receiver {
    memory reads = memory::unknown;
    bool reads_devices = true;
    std::deque<std::variant<queued_transfer, message>> queue;
    std::deque<queued_transfer> dropped;        // of messages that have failed, with offers or copies without an answer
    std::map<int, int> copies;                  // copies to the host that run, by device
    int offers = 0;                             // offers of the host without an answer, of all transfers
    std::map<int, int> device_offers;           // offers on devices without an answer, by device
    std::uint64_t at_once = 0;                  // the receiver reads so many bytes before the next message
    bool has_read = false;                      // whether the receiver has taken the offer that it answered last
    std::unordered_set<std::uint64_t> offered;  // transfers in this state, by number
    std::uint64_t under_way = 0;                // bytes in pieces without an answer
    std::unordered_map<std::uint64_t, piece_window::piece> pieces;  // pieces without an answer
    piece_window window;
  };

  void take(const shipment_begun& what);
  void take(const mark_drawn& what);
  void take(const piece_answered& what);
  void take(const offer_answered& what);
  void take(const copied_to_host& what);
  void take(const elements_came& what);
  void take(const receiver_down& what);
  void send_on(node_id to, receiver& at);
  bool send_next(node_id to, receiver& at);
  bool send_next_message(receiver& at);
  transfer_section cut(node_id to, queued_transfer& of, std::uint64_t most_bytes);
  static bool is_read_first(const receiver& at, const queued_transfer& of);
  static int& offers_beside(receiver& at, const transfer& of);
  static void note(receiver& at, offer_answered::answer how, bool on_device);
  static void refuse(queued_transfer& of);
  void fail(node_id to, receiver& at, std::uint64_t transfer, const error& why);
  void let_go_if_unused(receiver& at, const std::deque<queued_transfer>::iterator& which);

  std::int64_t now_ = 0;
  effects out_;
  std::uint64_t last_piece_ = 0;
  std::unordered_map<node_id, receiver> receivers_;
};

}  // namespace troupe::transfers
