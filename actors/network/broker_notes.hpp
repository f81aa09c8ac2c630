// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/broker_notes_test.cpp
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <caf/io/connection_handle.hpp>
#include <caf/node_id.hpp>

namespace caf::io {
class basp_broker;
}

namespace troupe::network {

/// What CAF keeps because of the messages that come by one connection with certificates. CAF has no limits of its own. Used by
/// the leader thread only.
///   BN-1  at most `most_actors` actors of the other end are known here, and at most as many actors of all nodes of BN-2
///         together. CAF learns an actor from each message that the actor sends, and forgets the actor when the other end says
///         that the actor has ended.
///   BN-2  one connection names at most `most_strangers` nodes that are not connected with this one. No message to such a node
///         leaves by the other end. For about `most_strangers` such nodes CAF keeps an entry for each actor that was named.
///   BN-3  no actor by which CAF asks a new node for its service (see message_rules) lives longer than it takes to ask: CAF
///         would keep one for each node, and the other end could fill its mailbox, or end it.
///   BN-4  some answers of CAF and of `gateway` are in no account of bytes. While bytes wait to leave, at most `most_owed`
///         bytes of such answers are expected. Otherwise a peer that asks, and does not read, would fill the memory.
class broker_notes {
 public:
  static constexpr std::size_t most_actors = std::size_t{1} << 17;
  static constexpr std::size_t most_strangers = 1024;
  static constexpr std::size_t most_owed = std::size_t{32} << 20;

  /// The broker has read a message, whose answers are expected to take `owed` bytes. Returns why the connection has to end;
  /// empty if it may go on.
  std::string read(caf::io::basp_broker& broker, caf::io::connection_handle by, std::size_t owed);
  /// A node that is not connected, and how many of its actors are known.
  using stranger = std::pair<caf::node_id, std::size_t>;
  /// As read(), for a message that has named actors of `strangers` for the first time. `actors`: how many actors of the other
  /// end are known.
  std::string count(const std::vector<stranger>& strangers, std::size_t actors, std::size_t owed);
  /// So many bytes have left. `is_all`: no more bytes wait.
  void left(std::size_t bytes, bool is_all) noexcept { owed_ -= is_all ? owed_ : std::min(bytes, owed_); }

 private:
  static void forget_strangers(caf::io::basp_broker& broker);
  static void end_askers(caf::io::basp_broker& broker);

  std::map<caf::node_id, std::size_t> strangers_;  // by the node: how many of its actors were known when it was named last
  std::size_t of_strangers_ = 0;                   // the sum of the counts in strangers_
  std::size_t owed_ = 0;
};

}  // namespace troupe::network
