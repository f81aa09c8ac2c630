// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/part_buffer.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::network {

void part_buffer::want_next() {
  const auto [flag, bytes] = wanted_;
  const auto least = std::max<std::size_t>(1, bytes);
  wished_ = flag == caf::io::receive_policy_flag::at_least ? least + std::max<std::size_t>(100, least / 10) : least;
  threshold_ = flag == caf::io::receive_policy_flag::at_most ? 1 : least;
  if (part_.capacity() > 2 * std::max(peak_.add(wished_), kept_bytes)) part_ = std::vector<char>();
  grow();
}

void part_buffer::want_rest(std::size_t come) noexcept {
  collected_ = come;
  threshold_ = part_.size();
}

void part_buffer::grow() {
  const auto next = std::min(wished_, std::max(first_capacity, 2 * part_.size()));
  if (part_.capacity() < next) part_.reserve(std::min(wished_, std::max(most_reserved, 2 * part_.size())));
  part_.resize(next);
}

void part_buffer::add(std::size_t bytes) noexcept {
  const auto fits = std::min(bytes, part_.size() - collected_);
  collected_ += fits;
  if (bytes == fits) return;
  ahead_begin_ = 0;
  ahead_end_ = bytes - fits;
}

void part_buffer::add_ahead() noexcept {
  const auto more = std::min(part_.size() - collected_, ahead_end_ - ahead_begin_);
  std::memcpy(part_.data() + collected_, ahead_.data() + ahead_begin_, more);
  collected_ += more;
  ahead_begin_ += more;
}

std::size_t part_buffer::take() noexcept { return std::exchange(collected_, 0); }

}  // namespace troupe::network
