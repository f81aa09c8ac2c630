// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <c10/core/Device.h>
#include <c10/core/Storage.h>
#include <caf/byte.hpp>
#include <caf/fwd.hpp>
#include <caf/span.hpp>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>
#include <troupe/messages/tensor_memory.hpp>
#include <troupe/messages/trailing_elements.hpp>

namespace troupe {

/// Stores the elements of large tensors, which arrive in pieces ahead of the messages that have the tensors. Reading a
/// tensor_piece calls add() with its elements. read() adds the elements that a tensor_offer names; reading a small offer calls
/// read_at_once(). Reading the message with the tensors calls take(), which removes the elements. Any thread may call any
/// function.
///   AT-1  a transfer holds only as much memory as was received or read for it, whatever size it announces. Memory for a device
///         is the exception: it comes from a pool with a limit (devices/landing.hpp).
///   AT-2  take() hands out the elements of a transfer only if all have come, from the first byte to the last, without a gap.
///   AT-3  if a piece does not fit its transfer, nothing of the transfer is kept.
///   AT-4  limit_sender() limits how many bytes and transfers of one sender wait to be taken. The transfers of a sender
///         announce at most `announced_factor` times the bytes of this limit. A piece beyond a limit ends its transfer.
///   AT-5  offers are read only of a sender that got a mark (take_offers), and only out of the process that got it.
///   AT-6  elements that a device copies are handed out only when the copy has ended. A transfer that ended before gets none.
///   AT-7  elements that trail the message of their piece count when the message is read, and only in the arrival for which
///         their place was made.
class arriving_tensors {
 public:
  /// The smallest size of a transfer, and of a piece that is not the last one of its transfer. A transfer takes at least one
  /// page of memory, whatever its size, so smaller transfers and pieces are refused.
  static constexpr std::uint64_t least_bytes = 4096;

  /// The default limit on the waiting transfers of one sender. The largest message has fewer, because a node sends only tensors
  /// of 64 KiB and more in pieces.
  static constexpr std::size_t most_transfers = 65'536;
  /// The transfers of a sender may announce this many times the sender's limit of bytes. A transfer takes address space for all
  /// bytes that it announces. The transfers of a node come one after another, or a few at once.
  static constexpr std::uint64_t announced_factor = 4;

  /// Sets how many bytes and transfers of one sender may wait. Before the first call, the limits are 8 GiB and most_transfers.
  void limit_sender(std::uint64_t bytes, std::size_t transfers = most_transfers);

  /// Gives memory for the elements of a tensor for a device. An empty storage: ordinary memory will do.
  using memory_for_device = c10::Storage (*)(c10::Device device, std::uint64_t bytes);
  void use_memory_for_devices(memory_for_device make);

  /// Adds the elements of a piece. A piece with offset 0 begins its transfer, or begins it anew. A piece with total 0 drops its
  /// transfer. Returns null, or why the piece is refused.
  const char* add(const tensor_piece& about, caf::span<const caf::byte> elements);

  /// Begins a piece whose elements trail its message. The caller reads the elements into the place, and calls add_trailing()
  /// when it reads the message.
  trailing_place place(const tensor_piece& about, std::uint64_t bytes);
  /// Adds the elements, which were read into the place. Returns null, or why the piece is refused.
  const char* add_trailing(const tensor_piece& about, const trailing_place& from);

  /// The largest size of an offered piece; larger pieces are refused. So one message of a sender makes this node take at most
  /// this much memory.
  static constexpr std::uint64_t most_offered = std::uint64_t{16} << 20;

  /// Copying so many bytes takes less than settings::short_work by default, so a network thread may do it.
  static constexpr std::uint64_t most_read_at_once = std::uint64_t{1} << 20;

  /// Lets this object read offers of the sender, out of the process that got this mark. The mark before counts no more.
  void take_offers(node_id sender, std::uint64_t process, const memory_mark& drawn);

  /// An offered piece that prepare() has found to be right. Holds no memory of the transfer.
  struct prepared_piece {
    std::uint64_t arrival = 0;
    memory_mark mark;  // which the process of the sender must have
  };
  /// Prepares the reading of an offered piece; the next piece of the transfer may then be prepared. An offer on a device has a
  /// whole transfer, which a device will copy. Returns no error on success; `refused` if the sender got no mark;
  /// `malformed_message` if the offer is wrong. Throws std::bad_alloc.
  std::optional<error> prepare(const tensor_offer& offer, prepared_piece& piece);
  /// Reads an offered piece that was prepared, on this thread and without blocking other threads. The pieces of a transfer may
  /// be read in any order, and at the same time. Returns no error on success; `refused` if nothing can be read from that
  /// process; `malformed_message` if the elements are not there, or the transfer has ended.
  std::optional<error> read(const tensor_offer& offer, const prepared_piece& piece);
  /// Prepares and reads the offer if it has a whole transfer of at most most_read_at_once bytes; otherwise returns nothing.
  /// Returns errc::none on success.
  std::optional<errc> read_at_once(const tensor_offer& offer) noexcept;

  /// Adds the elements of a prepared offer that a device has copied. Returns malformed_message if the arrival has ended.
  std::optional<error> add(const tensor_offer& offer, const prepared_piece& piece, c10::Storage elements);
  /// Ends the arrival of a prepared offer on a device, whose elements will not come.
  void give_up(const tensor_offer& offer, const prepared_piece& piece);
  /// The process whose offers of this sender are read; nothing if the sender got no mark.
  std::optional<std::uint64_t> process_of(node_id sender);

  /// Ends a transfer and returns its elements. Returns an empty storage if the transfer is not complete or has another size.
  c10::Storage take(node_id from, std::uint64_t transfer, std::uint64_t bytes);

  /// The elements of a transfer that was not taken yet, and how many bytes of them are there. Empty if there is no such
  /// transfer.
  std::pair<c10::Storage, std::uint64_t> look_at(node_id from, std::uint64_t transfer) const;

  /// Ends a transfer whose message can't be read.
  void end(node_id from, std::uint64_t transfer);

  /// Drops the mark and all transfers of a node that is gone.
  void drop(node_id from);

  /// Returns the number of bytes that have come and were not taken.
  std::uint64_t bytes() const;

  /// The most memory that is kept for later transfers while transfers come. trim(): as tensor_memory::trim(), to be called from
  /// time to time after a transfer has begun.
  static constexpr std::size_t most_kept = std::size_t{512} << 20;
  bool trim();

 private:
  struct arrival {
    std::uint64_t number = 0;  // of the transfer, and of how often it has begun
    c10::Storage elements;     // null as long as a device copies them
    std::uint64_t total = 0;
    std::uint64_t begun = 0;  // bytes of the pieces that have come, or are read
    std::uint64_t came = 0;
    bool on_device = false;
  };
  /// Sums over the transfers of one sender that were not taken yet.
  struct account {
    std::uint64_t begun = 0;
    std::uint64_t announced = 0;
    std::size_t transfers = 0;
  };
  using key = std::pair<std::uint64_t, std::uint64_t>;  // sender and number of the transfer
  struct drawn_mark {
    memory_mark mark;
    std::uint64_t process;
  };
  struct extent {
    std::uint64_t total;
    std::uint64_t offset;
    std::uint64_t bytes;
    c10::Device destination = c10::Device(c10::kCPU);
  };

  // Finds the arrival that a piece belongs to, and begins the piece. Returns null, or why the piece is refused. If the piece is
  // refused, nothing of the transfer is kept.
  const char* begin(const key& which, const extent& piece, arrival*& target, bool on_device = false) TROUPE_REQUIRES(mutex_);
  const char* refuse(const key& which, const char* why) TROUPE_REQUIRES(mutex_);
  bool may_come(const account& sender, const extent& piece) const TROUPE_REQUIRES(mutex_);

  using found_arrival = std::map<key, arrival>::iterator;
  found_arrival find(const key& which, std::uint64_t number) TROUPE_REQUIRES(mutex_);
  found_arrival find(const tensor_offer& offer, const prepared_piece& piece) TROUPE_REQUIRES(mutex_);
  found_arrival expected(const tensor_offer& offer, const prepared_piece& piece) TROUPE_REQUIRES(mutex_);
  found_arrival end(found_arrival which) TROUPE_REQUIRES(mutex_);
  void end(const key& which) TROUPE_REQUIRES(mutex_);

  c10::Storage memory_for(const extent& piece) TROUPE_REQUIRES(mutex_);

  mutable checked_mutex mutex_;
  memory_for_device memory_for_device_ TROUPE_GUARDED_BY(mutex_) = nullptr;
  tensor_memory memory_ TROUPE_GUARDED_BY(mutex_){most_kept};
  std::map<key, arrival> arrivals_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t last_ TROUPE_GUARDED_BY(mutex_) = 0;                     // number of the newest arrival
  std::map<std::uint64_t, drawn_mark> marks_ TROUPE_GUARDED_BY(mutex_);  // by sender
  std::map<std::uint64_t, account> waiting_ TROUPE_GUARDED_BY(mutex_);   // by sender; only of senders with open transfers
  std::uint64_t most_of_sender_ TROUPE_GUARDED_BY(mutex_) = std::uint64_t{8} << 30;
  std::size_t most_transfers_ TROUPE_GUARDED_BY(mutex_) = most_transfers;
};

/// Base class for the configuration of an actor system that takes tensors in pieces.
class tensor_receiver : public trailing_receiver {
 public:
  arriving_tensors& arriving() const noexcept { return arriving_; }
  std::optional<trailing_place> place_of_trailing(std::string_view values) const noexcept override;

 private:
  mutable arriving_tensors arriving_;  // mutable, because an actor system hands out its configuration as const
};

/// Returns the arriving tensors of the actor system that reads from `source`; null if that system takes no tensors in pieces.
arriving_tensors* arriving_at(caf::deserializer& source) noexcept;

}  // namespace troupe
