// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include <troupe/messages/messages.hpp>

namespace troupe::transfers {

/// Stores which nodes read large tensors out of this process's memory, and of which nodes this process reads the memory. The
/// node that reads draws a mark of random bytes; the other process stores the mark in its memory (memory_mark). Only one thread
/// may use the object.
///   DM-1  a mark that another node drew is stored until the node is forgotten or can't read. The mark is then overwritten; its
///         memory serves the next mark.
///   DM-2  a mark that this process drew belongs to one process of the node that got it. For that node, this process reads the
///         memory of no other process.
class direct_memory {
 public:
  direct_memory() = default;
  direct_memory(const direct_memory&) = delete;
  direct_memory& operator=(const direct_memory&) = delete;

  /// Stores the mark that the node drew. No effect if a mark of the node is stored already.
  void keep(node_id reader, const memory_mark& drawn);
  /// Drops the mark of a node that can't read this process's memory.
  void refused(node_id reader);
  /// Fills in this process and the address of the mark of node `reader`. Pre: a mark of `reader` is stored.
  void complete(tensor_offer& offer, node_id reader) const;

  /// A mark that this process has drawn, and the process that got it.
  struct drawn_mark {
    memory_mark mark;
    std::uint64_t process = 0;
  };

  /// Draws a mark for a process whose memory this process will read; null if the system has no random numbers.
  const memory_mark* draw(node_id sender, std::uint64_t process);
  /// The last mark that draw() drew for the node; null if there is none.
  const drawn_mark* drawn(node_id sender) const;

  void forget(node_id peer);

 private:
  std::deque<memory_mark> marks_;
  std::vector<memory_mark*> free_;  // unused elements of marks_
  std::unordered_map<node_id, memory_mark*> readers_;
  std::unordered_map<node_id, drawn_mark> drawn_;
};

}  // namespace troupe::transfers
