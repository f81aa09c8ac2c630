// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/arriving_tensors.hpp>

#include <cstring>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/deserializer.hpp>
#include <caf/execution_unit.hpp>

#include <troupe/messages/messages.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe {

const char* arriving_tensors::add(const tensor_piece& about, caf::span<const caf::byte> elements) {
  std::lock_guard lock(mutex_);
  const std::pair key{about.from.value, about.transfer};
  if (about.total == 0) {
    arrivals_.erase(key);
    return elements.size() == 0 ? nullptr : "a piece that calls a transfer off brings elements";
  }
  auto refused = [&](const char* why) {
    arrivals_.erase(key);
    return why;
  };
  if (about.total < least_bytes || about.total > max_payload_bytes) {
    return refused("a piece is of a tensor that is too small to come in pieces, or too large to travel");
  }
  if (about.offset > about.total || elements.size() > about.total - about.offset) {
    return refused("a piece lies beyond the end of its tensor");
  }
  if (elements.size() < least_bytes && elements.size() != about.total - about.offset) {
    return refused("a piece is smaller than a page, and not the last one");
  }
  if (about.offset == 0) {
    arrivals_.erase(key);
    arrivals_[key] = {memory_.make(about.total), about.total, 0};
  }
  const auto found = arrivals_.find(key);
  if (found == arrivals_.end() || found->second.total != about.total || found->second.came != about.offset) {
    return refused("a piece does not go on where the one before it ended");
  }
  auto& arrival = found->second;
  std::memcpy(static_cast<char*>(arrival.elements.mutable_data()) + about.offset, elements.data(), elements.size());
  arrival.came += elements.size();
  return nullptr;
}

c10::Storage arriving_tensors::take(node_id from, std::uint64_t transfer, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto found = arrivals_.find({from.value, transfer});
  if (found == arrivals_.end()) {
    return {};
  }
  const arrival taken = std::move(found->second);
  arrivals_.erase(found);
  return taken.came == taken.total && taken.total == bytes ? taken.elements : c10::Storage{};
}

void arriving_tensors::drop(node_id from) {
  std::lock_guard lock(mutex_);
  arrivals_.erase(arrivals_.lower_bound({from.value, 0}), arrivals_.upper_bound({from.value, ~std::uint64_t{0}}));
}

std::uint64_t arriving_tensors::bytes() const {
  std::lock_guard lock(mutex_);
  std::uint64_t result = 0;
  for (const auto& [key, arrival] : arrivals_) {
    result += arrival.came;
  }
  return result;
}

arriving_tensors* arriving_at(caf::deserializer& source) noexcept {
  auto* unit = source.context();
  if (unit == nullptr) {
    return nullptr;
  }
  const auto* taker = dynamic_cast<const takes_tensors*>(&unit->system().config());
  return taker != nullptr ? &taker->arriving() : nullptr;
}

}  // namespace troupe
