// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include <troupe/messages/messages.hpp>

namespace troupe::transfers {

/// Which nodes read large tensors out of this process's memory, and which nodes' memory is read here. For one thread.
///   DM-1  the mark that a node drew stays in memory only until the node is forgotten or can't read. Its memory is then overwritten, and
///         kept for another mark.
///   DM-2  a node is asked for a mark once.
class direct_memory {
 public:
  direct_memory() = default;
  direct_memory(const direct_memory&) = delete;
  direct_memory& operator=(const direct_memory&) = delete;

  /// True at the first call for this node: the caller then asks the node for a mark.
  bool ask(node_id reader) { return readers_.try_emplace(reader).second; }
  /// The node answered with its mark.
  void keep(node_id reader, const memory_mark& drawn);
  /// The node answered that it can't read this process's memory.
  void refused(node_id reader);
  bool reads_here(node_id reader) const;
  /// Fills in where the reader finds the elements. Pre: reads_here.
  void complete(tensor_offer& offer, node_id reader) const;

  /// Draws the mark of a node whose memory is to be read here; null if the system has no random numbers.
  const memory_mark* draw(node_id sender);
  /// The mark that draw() drew for this node; null if there is none.
  const memory_mark* drawn(node_id sender) const;

  void forget(node_id peer);

 private:
  std::deque<memory_mark> marks_;
  std::vector<memory_mark*> free_;                     // of them
  std::unordered_map<node_id, memory_mark*> readers_;  // null: can't, or has not answered
  std::unordered_map<node_id, memory_mark> drawn_;
};

}  // namespace troupe::transfers
