// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/silent_connections.hpp>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

namespace troupe::network {

namespace {

/// Whether the process has few free descriptors left. False if the limit of the process is so high that `most` silent
/// connections can't use up the descriptors.
bool few_are_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 16 * silent_connections::most) return false;
  std::vector<pollfd> all(limit.rlim_cur);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].fd = static_cast<int>(i);
  if (::poll(all.data(), all.size(), 0) < 0) return false;
  const auto free = std::count_if(all.begin(), all.end(), [](const pollfd& each) { return (each.revents & POLLNVAL) != 0; });
  return static_cast<std::size_t>(free) < std::min(silent_connections::reserve, all.size() / 8);
}

}  // namespace

silent_connections::token silent_connections::add(int socket) {
  auto result = std::make_shared<const int>(socket);
  all_.push_back(result);
  const bool is_full = few_are_left();
  if (!is_full && all_.size() <= most) return result;
  std::erase_if(all_, [](const auto& each) { return each.expired(); });
  if (!is_full && all_.size() <= most) return result;
  if (const auto oldest = all_.front().lock()) ::shutdown(*oldest, SHUT_RDWR);
  all_.pop_front();
  return result;
}

}  // namespace troupe::network
