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

/// Limits the memory that CAF uses for the messages of one connection with certificates. CAF itself has no such limits. Used by
/// the leader thread only (see network_threads).
///   BN-1  the connection ends if CAF has proxies for more than `most_actors` actors of the other end. It also ends if CAF has
///         proxies for more than `most_actors` actors of all nodes of BN-2 together. CAF makes a proxy for each remote actor
///         that it learns of, and keeps it until the other end reports that the actor has ended.
///   BN-2  the connection ends if its messages name more than `most_strangers` nodes that are not connected with this node. No
///         message to such a node is sent by way of the other end. CAF keeps proxies for the actors of about `most_strangers`
///         such nodes.
///   BN-3  for each new node, CAF makes an actor that asks the node for CAF's service (see message_rules). The actor is ended
///         once it has asked. Otherwise CAF would keep one such actor for each node, and the other end could fill the actor's
///         mailbox or end the actor.
///   BN-4  no other limit counts the bytes of certain answers of CAF and of `gateway` (message_rules::owed). The connection
///         ends if such answers that wait to leave are expected to take more than `most_owed` bytes. Otherwise a peer that asks
///         questions and reads no answers would fill the memory.
class broker_notes {
 public:
  static constexpr std::size_t most_actors = std::size_t{1} << 17;
  static constexpr std::size_t most_strangers = 1024;
  static constexpr std::size_t most_owed = std::size_t{32} << 20;

  /// To be called when the broker has read a message of the connection `by`. `owed`: how many bytes the answers to the message
  /// are expected to take. Returns why the connection has to end; empty if the connection may go on.
  std::string read(caf::io::basp_broker& broker, caf::io::connection_handle by, std::size_t owed);
  /// A node that is not connected with this node, and how many of its actors have proxies.
  using stranger = std::pair<caf::node_id, std::size_t>;
  /// As read(), for a message that has named new actors of the nodes `strangers`. `actors`: how many actors of the other end
  /// have proxies.
  std::string count(const std::vector<stranger>& strangers, std::size_t actors, std::size_t owed);
  /// Says that `bytes` bytes have left by the connection. `is_all`: whether no more bytes wait.
  void left(std::size_t bytes, bool is_all) noexcept { owed_ -= is_all ? owed_ : std::min(bytes, owed_); }

 private:
  static void forget_strangers(caf::io::basp_broker& broker);
  static void end_askers(caf::io::basp_broker& broker);

  std::map<caf::node_id, std::size_t> strangers_;  // for each node: how many proxies its actors had when it was named last
  std::size_t of_strangers_ = 0;                   // the sum of the counts in strangers_
  std::size_t owed_ = 0;
};

}  // namespace troupe::network
