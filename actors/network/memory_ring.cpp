// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/memory_ring.hpp>

#include <algorithm>
#include <cstring>

namespace troupe::network {

namespace {

constexpr auto capacity = ring_writer::capacity;

std::size_t offset_of(std::uint64_t position) { return static_cast<std::size_t>(position % capacity); }

/// Clears the flag, and returns whether it was set. If several threads find the flag set, exactly one of them gets true.
bool clear_if_set(std::atomic<std::uint32_t>& flag) { return flag.load() != 0 && flag.exchange(0) != 0; }

}  // namespace

void ring_writer::begin(std::uint64_t after) {
  begun_ = true;
  shared_.begins_after.store(after, std::memory_order_release);
}

/// The number of free bytes; empty if the reader's counter is impossible. Bytes that the reader will skip count as free.
std::optional<std::size_t> ring_writer::free_space() const {
  const auto read = std::max(shared_.read.load(), skipped_to_);
  if (read > written_ || written_ - read > capacity) return std::nullopt;
  return capacity - static_cast<std::size_t>(written_ - read);
}

std::optional<std::size_t> ring_writer::write(const char* from, std::size_t bytes) {
  const auto free = free_space();
  if (!free) return std::nullopt;
  const auto taken = std::min({bytes, *free, most_at_once});
  if (taken == 0) return 0;
  if (*free == capacity && offset_of(written_) >= rewinds_from) {
    skipped_to_ = written_ + capacity - offset_of(written_);
    shared_.skips_from.store(written_, std::memory_order_relaxed);
    shared_.skips_to.store(skipped_to_, std::memory_order_relaxed);
    written_ = skipped_to_;
  }
  const auto offset = offset_of(written_);
  const auto first = std::min(taken, capacity - offset);
  std::memcpy(bytes_ + offset, from, first);
  std::memcpy(bytes_, from + first, taken - first);
  written_ += taken;
  shared_.written.store(written_);
  return taken;
}

bool ring_writer::has_to_wake_reader() { return clear_if_set(shared_.reader_sleeps); }

bool ring_writer::may_sleep() {
  shared_.writer_waits.store(1);
  const auto free = free_space();
  return free && *free < enough_space;
}

bool ring_reader::has_begun_after(std::uint64_t bytes) const {
  return bytes != ring_control::not_begun && shared_.begins_after.load(std::memory_order_acquire) == bytes;
}

std::optional<std::size_t> ring_reader::read(char* to, std::size_t bytes) {
  const auto written = shared_.written.load();
  if (written == read_) return 0;
  auto from = read_;
  if (shared_.skips_from.load(std::memory_order_relaxed) == from)
    from = std::max(from, shared_.skips_to.load(std::memory_order_relaxed));
  if (written < from || written - from > capacity) return std::nullopt;
  const auto taken = std::min(bytes, static_cast<std::size_t>(written - from));
  const auto offset = offset_of(from);
  const auto first = std::min(taken, capacity - offset);
  std::memcpy(to, bytes_ + offset, first);
  std::memcpy(to + first, bytes_, taken - first);
  read_ = from + taken;
  shared_.read.store(read_);
  return taken;
}

/// False while there is too little space, because the reader will free more as it reads on.
bool ring_reader::has_to_wake_writer() {
  const auto unread = shared_.written.load(std::memory_order_relaxed) - read_;
  return unread <= capacity - ring_writer::enough_space && clear_if_set(shared_.writer_waits);
}

bool ring_reader::may_sleep() {
  sleeps_ = true;
  shared_.reader_sleeps.store(1);
  return is_empty();
}

void ring_reader::wake() {
  if (!sleeps_) return;
  sleeps_ = false;
  shared_.reader_sleeps.store(0, std::memory_order_relaxed);
}

}  // namespace troupe::network
