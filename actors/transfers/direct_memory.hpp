// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include <troupe/messages/messages.hpp>

namespace troupe::transfers {

/// Which nodes read large tensors out of this process's memory, and whose memory is read here. One thread's.
///   DM-1  the mark that a node drew lies here only until the node is forgotten or can't read: its place is wiped then, not freed.
///   DM-2  a node is asked once.
class direct_memory {
 public:
  direct_memory() = default;
  direct_memory(const direct_memory&) = delete;
  direct_memory& operator=(const direct_memory&) = delete;

  /// Whether that node has not been asked yet; from now on it has.
  bool ask(node_id reader) { return readers_.try_emplace(reader).second; }
  /// It answered.
  void keep(node_id reader, const memory_mark& drawn);
  /// It can't read here.
  void refused(node_id reader);
  bool reads_here(node_id reader) const;
  /// Fills in where the reader finds the elements. Pre: reads_here.
  void complete(tensor_offer& offer, node_id reader) const;

  /// Draws the mark of a node whose memory is to be read here; null if the system has no random numbers.
  const memory_mark* draw(node_id sender);
  /// Null if none was drawn.
  const memory_mark* drawn(node_id sender) const;

  void forget(node_id peer);

 private:
  std::deque<memory_mark> places_;
  std::vector<memory_mark*> free_;                     // of them
  std::unordered_map<node_id, memory_mark*> readers_;  // null: can't, or has not answered
  std::unordered_map<node_id, memory_mark> drawn_;
};

}  // namespace troupe::transfers
