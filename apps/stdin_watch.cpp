// SPDX-License-Identifier: BSD-3-Clause
#include "apps/stdin_watch.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace troupe::apps {

stdin_watch::stdin_watch(std::chrono::milliseconds patience, std::function<void()> silent)
    : silent_(std::move(silent)), leave_(support::make_pipe()) {
  if (!leave_.read) throw std::system_error(errno, std::generic_category(), "cannot watch stdin");
  thread_ = std::thread([this, patience] { run(patience); });
}

stdin_watch::~stdin_watch() {
  leave_.write = {};
  thread_.join();
}

void stdin_watch::run(std::chrono::milliseconds patience) const {
  std::array<char, 256> ignored;
  for (;;) {
    std::array<pollfd, 2> watched{{{STDIN_FILENO, POLLIN, 0}, {leave_.read.get(), POLLIN, 0}}};
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(patience.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (watched[1].revents != 0) return;
    if (ready <= 0 || ::read(STDIN_FILENO, ignored.data(), ignored.size()) <= 0) return silent_();
  }
}

}  // namespace troupe::apps
