// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <troupe/actors/contracts/workers.hpp>
#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/devices/foreign_devices.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::transfers {

/// Spawns a memory reader. Throws std::system_error if the system gives no thread.
contracts::memory_reader_actor spawn_memory_reader(uses<with_network, with_actors> here,
                                                   std::shared_ptr<devices::foreign_devices> devices);

/// The memory readers of a node. Any thread may use lazy_memory_readers.
///   MY-1  the first offer starts a reader. An offer that comes while others are read starts the next one, up to `most`: the
///         sender offers a large tensor in several pieces, and one core does not use all of the memory's bandwidth. Readers
///         that had nothing to read for `idle_time` end, and their threads with them; the next offer starts one again.
class lazy_memory_readers {
 public:
  static constexpr std::size_t most = 2;
  using used_services = uses<with_network, with_actors, with_deadlines>;

  explicit lazy_memory_readers(used_services here, std::chrono::nanoseconds idle_time = std::chrono::seconds(10))
      : here_(here), idle_time_(idle_time) {}

  /// Gives the offer to a reader. False after stop(). Throws std::system_error if the system gives no thread for the first
  /// reader. Pre: the node has a network.
  bool read(contracts::incoming_offer_ptr job);
  /// To be called when a reader has returned an offer.
  void was_read();
  /// Closes what is open of the memory of another process's devices.
  void forget(std::uint64_t process) { devices_->forget(process); }
  /// For the node's end: returns the readers that run. The caller ends them.
  std::vector<contracts::memory_reader_actor> stop();

 private:
  void add() TROUPE_REQUIRES(mutex_);
  void watch() TROUPE_REQUIRES(mutex_);
  void end_if_unused(std::uint64_t offers);

  const used_services here_;
  const std::chrono::nanoseconds idle_time_;
  const std::shared_ptr<devices::foreign_devices> devices_ = std::make_shared<devices::foreign_devices>();
  checked_mutex mutex_;
  std::vector<contracts::memory_reader_actor> readers_ TROUPE_GUARDED_BY(mutex_);
  /// Keep other nodes from sending to the readers, also while those end.
  std::vector<gate::own_actors::hold> guards_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t offers_ TROUPE_GUARDED_BY(mutex_) = 0;    // offers that were given to readers so far
  std::uint64_t not_read_ TROUPE_GUARDED_BY(mutex_) = 0;  // offers that have not returned
  bool is_watched_ TROUPE_GUARDED_BY(mutex_) = false;     // whether an alarm is set that ends the readers if they are not used
  bool stopped_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::transfers
