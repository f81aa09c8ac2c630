// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/direct_memory.hpp>

#include <sys/random.h>
#include <cstdint>
#include <utility>

#include <troupe/messages/expect.hpp>
#include <troupe/messages/foreign_memory.hpp>

namespace troupe::transfers {

void direct_memory::keep(node_id reader, const memory_mark& drawn) {
  const auto asked = readers_.find(reader);
  if (asked == readers_.end() || asked->second != nullptr) return;
  if (free_.empty()) free_.push_back(&marks_.emplace_back());
  asked->second = free_.back();
  free_.pop_back();
  *asked->second = drawn;
}

void direct_memory::refused(node_id reader) {
  const auto asked = readers_.find(reader);
  if (asked == readers_.end() || asked->second == nullptr) return;
  free_.push_back(std::exchange(asked->second, nullptr));
  *free_.back() = {};
}

bool direct_memory::reads_here(node_id reader) const {
  const auto asked = readers_.find(reader);
  return asked != readers_.end() && asked->second != nullptr;
}

void direct_memory::complete(tensor_offer& offer, node_id reader) const {
  TROUPE_EXPECT(reads_here(reader));
  offer.process = this_process();
  offer.mark = reinterpret_cast<std::uintptr_t>(readers_.at(reader)->words.data());
}

const memory_mark* direct_memory::draw(node_id sender, std::uint64_t process) {
  memory_mark result;
  if (::getrandom(result.words.data(), sizeof result.words, 0) != sizeof result.words) return nullptr;
  return &(drawn_[sender] = {result, process}).mark;
}

const direct_memory::drawn_mark* direct_memory::drawn(node_id sender) const {
  const auto found = drawn_.find(sender);
  return found == drawn_.end() ? nullptr : &found->second;
}

void direct_memory::forget(node_id peer) {
  refused(peer);
  readers_.erase(peer);
  drawn_.erase(peer);
}

}  // namespace troupe::transfers
