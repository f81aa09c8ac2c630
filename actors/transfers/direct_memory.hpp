// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include <troupe/messages/messages.hpp>

namespace troupe::transfers {

/// Stores the marks of the nodes that read large tensors out of this process's memory. The node that reads draws a mark of
/// random bytes; this process stores the mark in its memory (memory_mark). Only one thread may use the object.
///   DM-1  a mark that another node drew is stored until the node is forgotten, or this object ends. The mark is then
///         overwritten, so offers that the node has not read yet are refused; its memory serves the next mark.
class direct_memory {
 public:
  direct_memory() = default;
  ~direct_memory();
  direct_memory(const direct_memory&) = delete;
  direct_memory& operator=(const direct_memory&) = delete;

  /// Stores the mark that the node drew. No effect if a mark of the node is stored already.
  void keep(node_id reader, const memory_mark& drawn);
  /// Drops the mark of a node that is gone, or that can't read this process's memory.
  void forget(node_id reader);
  /// Fills in this process and the address of the mark of node `reader`. Pre: a mark of `reader` is stored.
  void complete(tensor_offer& offer, node_id reader) const;

 private:
  std::deque<memory_mark> marks_;
  std::vector<memory_mark*> free_;  // unused elements of marks_
  std::unordered_map<node_id, memory_mark*> readers_;
};

}  // namespace troupe::transfers
