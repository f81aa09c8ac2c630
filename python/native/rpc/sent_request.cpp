// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/sent_request.hpp"

#include <chrono>
#include <utility>

#include <troupe/actors/future.hpp>

namespace torchtroupe {

namespace {

thread_local std::shared_ptr<sent_request> last;

}  // namespace

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

void sent_request::wait() {
  const auto own = std::exchange(last, nullptr);
  if (own) own->await();
}

void sent_request::await() {
  std::unique_lock lock(mutex_);
  if (is_answered_) return;
  is_awaited_ = true;
  lock.unlock();
  // Waking a thread that sleeps takes longer than a small function.
  const auto until = std::chrono::steady_clock::now() + troupe::detail::awake_for;
  while (!is_answered_ && std::chrono::steady_clock::now() < until) troupe::detail::spin_pause();
  lock.lock();
  answered_.wait(lock, [this]() -> bool { return is_answered_; });
  const auto end = std::exchange(end_, nullptr);
  lock.unlock();
  end();
}

}  // namespace torchtroupe
