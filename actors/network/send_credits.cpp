// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/send_credits.hpp>

#include <troupe/actors/future.hpp>

namespace troupe::calls {

send_credits::outcome send_credits::take(const account& of, std::uint64_t bytes, std::chrono::steady_clock::time_point until) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return outcome::stopped;
    if (accounts_.take(of, bytes)) return outcome::taken;
  }
  if (detail::continuation_scope::active()) return outcome::busy;
  auto* observer = blocking_observer::current();
  if (observer != nullptr) observer->blocked();
  const auto result = wait(of, bytes, until);
  if (observer != nullptr) observer->resumed();
  return result;
}

send_credits::outcome send_credits::wait(const account& of, std::uint64_t bytes, std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  const auto mine = accounts_.wait(of, bytes);
  bool took = false;
  changed_.wait_until(lock, until, [&] { return stopped_ || (took = accounts_.take_in_turn(of, mine)); });
  if (!took) accounts_.give_up(of, mine);
  const auto result = took ? outcome::taken : stopped_ ? outcome::stopped : outcome::deadline_passed;
  lock.unlock();
  changed_.notify_all();  // it may be the next one's turn
  return result;
}

void send_credits::give_back(const account& of, std::uint64_t bytes) {
  bool is_awaited = false;
  {
    std::lock_guard lock(mutex_);
    is_awaited = accounts_.give_back(of, bytes);
  }
  if (is_awaited) changed_.notify_all();
}

std::uint64_t send_credits::under_way(const account& of) const {
  std::lock_guard lock(mutex_);
  return accounts_.under_way(of);
}

void send_credits::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}  // namespace troupe::calls
