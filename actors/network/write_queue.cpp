// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/write_queue.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe::network {

namespace {

// An open block holds less than `full_block` bytes: a smaller message still fits behind them.
constexpr std::size_t block_capacity = 2 * write_queue::full_block;

}  // namespace

void write_queue::seal() {
  if (open_.size() >= full_block) close_block();
}

void write_queue::close_block() {
  if (open_.empty()) return;
  sealed_bytes_ += open_.size();
  sealed_.push_back(std::exchange(open_, take_spare()));
}

void write_queue::rest() {
  if (empty()) shrink();
}

std::span<const char> write_queue::front() {
  assert(!empty());
  if (leaving_.empty()) {
    if (sealed_.empty()) {
      leaving_.swap(open_);
    } else {
      spare(std::exchange(leaving_, std::move(sealed_.front())));
      sealed_.pop_front();
      sealed_bytes_ -= leaving_.size();
    }
  }
  return {leaving_.data() + left_, leaving_.size() - left_};
}

void write_queue::pop(std::size_t bytes) {
  assert(bytes <= leaving_.size() - left_);
  left_ += bytes;
  round_ += bytes;
  if (left_ < leaving_.size()) return;
  left_ = 0;
  leaving_.clear();
  if (empty()) shrink();
}

std::size_t write_queue::held() const noexcept {
  auto result = leaving_.capacity() + open_.capacity();
  for (const auto& each : sealed_) result += each.capacity();
  for (const auto& each : spares_) result += each.capacity();
  return result;
}

std::vector<char> write_queue::take_spare() {
  std::vector<char> result;
  if (spares_.empty()) {
    result.reserve(block_capacity);
  } else {
    result = std::move(spares_.back());
    spares_.pop_back();
  }
  return result;
}

void write_queue::spare(std::vector<char> block) {
  const bool fits = block.capacity() >= full_block && block.capacity() <= 2 * block_capacity;
  if (fits && spares_.size() < most_spares) spares_.push_back(std::move(block));
}

/// Frees memory that was not needed lately. Pre: the queue is empty.
void write_queue::shrink() {
  assert(empty());
  const auto needed = std::max(peak_.add(std::exchange(round_, 0)), kept_bytes);
  if (needed < full_block) spares_.clear();
  for (auto* each : {&leaving_, &open_})
    if (each->capacity() > 2 * needed) *each = std::vector<char>();
}

}  // namespace troupe::network
