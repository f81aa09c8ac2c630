// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>

#include <troupe/actors/contracts/workers.hpp>
#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::transfers {

/// Spawns a memory reader. Throws std::system_error if the system gives no thread.
contracts::memory_reader_actor spawn_memory_reader(uses<with_network, with_actors> here);

/// The memory reader of a node. Any thread may use lazy_memory_reader.
///   MY-1  the first offer starts the reader. A reader that had nothing to read for `idle_time` ends, and its thread with it;
///         the next offer starts another one.
class lazy_memory_reader {
 public:
  using used_services = uses<with_network, with_actors, with_deadlines>;

  explicit lazy_memory_reader(used_services here, std::chrono::nanoseconds idle_time = std::chrono::seconds(10))
      : here_(here), idle_time_(idle_time) {}

  /// Gives the offer to the reader. False after stop(). Throws std::system_error if the system gives no thread. Pre: the node
  /// has a network.
  bool read(contracts::incoming_offer_ptr job);
  /// To be called when the reader has returned an offer.
  void was_read();
  /// For the node's end: returns the reader, or null if none runs. The caller ends the reader.
  contracts::memory_reader_actor stop();

 private:
  void watch() TROUPE_REQUIRES(mutex_);
  void end_if_unused(std::uint64_t offers);

  const used_services here_;
  const std::chrono::nanoseconds idle_time_;
  checked_mutex mutex_;
  contracts::memory_reader_actor reader_ TROUPE_GUARDED_BY(mutex_);
  gate::own_actors::hold guard_ TROUPE_GUARDED_BY(mutex_);  // keeps other nodes from sending to the reader
  std::uint64_t offers_ TROUPE_GUARDED_BY(mutex_) = 0;      // offers that were given to readers so far
  std::uint64_t not_read_ TROUPE_GUARDED_BY(mutex_) = 0;    // offers that have not returned
  bool is_watched_ TROUPE_GUARDED_BY(mutex_) = false;       // whether an alarm is set that ends the reader if it is not used
  bool stopped_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::transfers
