// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/broker_notes_test.cpp
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <caf/io/connection_handle.hpp>
#include <caf/node_id.hpp>

namespace caf::io {
class basp_broker;
}

namespace troupe::network {

/// What CAF keeps because of the messages that come by one connection with certificates. CAF has no limits of its own. Used by the leader
/// thread only.
///   BN-1  of the other end's actors at most `most_actors` are known here. CAF learns an actor from each message that the actor sends, and
///         forgets the actor when the other end says that it has ended.
///   BN-2  by one connection at most `most_strangers` nodes are named that are not connected with this one. No message takes the way to such
///         a node by the other end. CAF keeps an actor for each node of which it has ever heard, and an entry for each actor that was named,
///         even for one that can't be; of nodes that are not connected those of about `most_strangers` are kept.
///   BN-3  while bytes wait to leave, at most `most_owed` bytes more are expected of answers that CAF and `gateway` give without an account for
///         their bytes. A peer that asks, and does not read, would fill the memory.
class broker_notes {
 public:
  static constexpr std::size_t most_actors = std::size_t{1} << 17;
  static constexpr std::size_t most_strangers = 1024;
  static constexpr std::size_t most_owed = std::size_t{32} << 20;

  /// The broker has read a message, whose answers are expected to take `owed` bytes. Returns why the connection has to end; empty if it may
  /// go on.
  std::string read(caf::io::basp_broker& broker, caf::io::connection_handle by, std::size_t owed);
  /// The same, for a message that has named nodes that are not connected, when so many actors of the other end are known.
  std::string count(const std::vector<caf::node_id>& strangers, std::size_t actors, std::size_t owed);
  /// So many bytes have left. `is_all`: no more bytes wait.
  void left(std::size_t bytes, bool is_all) noexcept { owed_ -= is_all ? owed_ : std::min(bytes, owed_); }

 private:
  static void forget_strangers(caf::io::basp_broker& broker);

  std::set<caf::node_id> strangers_;
  std::size_t owed_ = 0;
};

}  // namespace troupe::network
