// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/sent_request.hpp"

#include <utility>

#include <troupe/actors/future.hpp>

namespace torchtroupe {

namespace {

thread_local std::shared_ptr<sent_request> last;

}  // namespace

bool& sent_request::is_awaited_at_once() {
  static thread_local bool of_thread = false;
  return of_thread;
}

std::shared_ptr<sent_request> sent_request::of_this_thread() { return last = std::make_shared<sent_request>(); }

bool sent_request::hand_over(std::function<void()>& end) {
  {
    const std::lock_guard lock(mutex_);
    is_answered_ = true;
    if (!is_awaited_) return false;
    end_ = std::move(end);
  }
  answered_.notify_one();
  return true;
}

bool sent_request::wait(std::chrono::duration<double> patience) {
  const auto own = last;
  if (own && !own->await(patience)) return false;
  if (last == own) last = nullptr;
  return true;
}

bool sent_request::await(std::chrono::duration<double> patience) {
  std::unique_lock lock(mutex_);
  if (is_answered_) return true;
  is_awaited_ = true;
  lock.unlock();
  // Waking a thread that sleeps takes longer than a small function.
  const auto until = std::chrono::steady_clock::now() + troupe::detail::awake_for;
  while (!is_answered_ && std::chrono::steady_clock::now() < until) troupe::detail::spin_pause();
  lock.lock();
  if (!answered_.wait_for(lock, patience, [this]() -> bool { return is_answered_; })) {
    is_awaited_ = false;
    return false;
  }
  const auto end = std::exchange(end_, nullptr);
  lock.unlock();
  end();
  return true;
}

}  // namespace torchtroupe
