// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/chunk_buffer.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::network {

void chunk_buffer::want_next() {
  const auto [flag, bytes] = wanted_;
  const auto least = std::max<std::size_t>(1, bytes);
  wished_ = flag == caf::io::receive_policy_flag::at_least ? least + std::max<std::size_t>(100, least / 10) : least;
  threshold_ = flag == caf::io::receive_policy_flag::at_most ? 1 : least;
  if (chunk_.capacity() > 2 * std::max(peak_.add(wished_), kept_bytes)) chunk_ = std::vector<char>();
  grow();
}

void chunk_buffer::want_rest(std::size_t come) noexcept {
  collected_ = come;
  threshold_ = chunk_.size();
  to_ = chunk_;
}

void chunk_buffer::want_into(std::span<char> memory) noexcept {
  threshold_ = memory.size();
  to_ = memory;
}

void chunk_buffer::grow() {
  const auto next = std::min(wished_, std::max(first_capacity, 2 * chunk_.size()));
  if (chunk_.capacity() < next) chunk_.reserve(std::min(wished_, std::max(most_reserved, 2 * chunk_.size())));
  chunk_.resize(next);
  to_ = chunk_;
}

void chunk_buffer::add(std::size_t bytes) noexcept {
  const auto fits = std::min(bytes, to_.size() - collected_);
  collected_ += fits;
  if (bytes == fits) return;
  ahead_begin_ = 0;
  ahead_end_ = bytes - fits;
}

void chunk_buffer::add_ahead() noexcept {
  const auto more = std::min(to_.size() - collected_, ahead_end_ - ahead_begin_);
  std::memcpy(to_.data() + collected_, ahead_.data() + ahead_begin_, more);
  collected_ += more;
  ahead_begin_ += more;
}

std::size_t chunk_buffer::take() noexcept {
  to_ = chunk_;
  return std::exchange(collected_, 0);
}

}  // namespace troupe::network
