// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/direct_memory.hpp>

#include <string.h>
#include <cstdint>
#include <utility>

#include <troupe/messages/expect.hpp>
#include <troupe/messages/foreign_memory.hpp>

namespace troupe::transfers {

direct_memory::~direct_memory() {
  for (auto& each : marks_) ::explicit_bzero(each.words.data(), sizeof each.words);
}

void direct_memory::keep(node_id reader, const memory_mark& drawn) {
  const auto [kept, is_new] = readers_.try_emplace(reader);
  if (!is_new) return;
  if (free_.empty()) free_.push_back(&marks_.emplace_back());
  kept->second = free_.back();
  free_.pop_back();
  *kept->second = drawn;
}

void direct_memory::forget(node_id reader) {
  const auto kept = readers_.extract(reader);
  if (!kept) return;
  free_.push_back(kept.mapped());
  *free_.back() = {};
}

void direct_memory::complete(tensor_offer& offer, node_id reader) const {
  const auto kept = readers_.find(reader);
  TROUPE_EXPECT(kept != readers_.end());
  offer.process = this_process();
  offer.mark = reinterpret_cast<std::uintptr_t>(kept->second->words.data());
}

}  // namespace troupe::transfers
