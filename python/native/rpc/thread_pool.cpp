// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/thread_pool.hpp"

#include <mutex>
#include <utility>

namespace torchtroupe {

struct waiting_thread::account {
  std::function<void()> blocked, resumed;
  std::mutex mutex;
  std::size_t open = 0;
  bool over = false;

  static std::shared_ptr<account>& current() {
    static thread_local std::shared_ptr<account> of_thread;
    return of_thread;
  }
  void begin() {
    const std::lock_guard lock(mutex);
    if (++open == 1) blocked();
  }
  void end() {
    const std::lock_guard lock(mutex);
    if (--open == 0 && !over) resumed();
  }
};

waiting_thread::waiting_thread(std::function<void()> blocked, std::function<void()> resumed)
    : account_(std::make_shared<account>()), outer_(std::exchange(account::current(), account_)) {
  account_->blocked = std::move(blocked);
  account_->resumed = std::move(resumed);
}

waiting_thread::~waiting_thread() {
  account::current() = std::move(outer_);
  const std::lock_guard lock(account_->mutex);
  account_->over = true;
  if (account_->open > 0) account_->resumed();
}

std::function<void()> waiting_thread::request() {
  auto of_thread = account::current();
  if (!of_thread) return {};
  of_thread->begin();
  return [of_thread] { of_thread->end(); };
}

void thread_pool::run(std::function<void()> task) {
  {
    const troupe::checked_lock lock(mutex_);
    if (!stopped_) {
      tasks_.push_back(std::move(task));
      wake_thread();
      return;
    }
  }
  task();
}

// A thread that is woken counts as idle until it runs.
void thread_pool::wake_thread() {
  if (!has_slot()) return;
  if (tasks_.size() > idle_ && threads_.size() - blocked_ < most_)
    threads_.emplace_back([this] { serve(); });
  else
    wake_.notify_one();
}

void thread_pool::serve() {
  troupe::checked_unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    while (!stopped_ && (tasks_.empty() || !has_slot())) wake_.wait(lock);
    --idle_;
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    lock.unlock();
    {
      const waiting_thread told([this] { block(); }, [this] { resume(); });
      task();
      task = nullptr;
    }
    lock.lock();
    --running_;
  }
}

void thread_pool::block() {
  const troupe::checked_lock lock(mutex_);
  ++blocked_;
  if (!tasks_.empty() && !stopped_) wake_thread();
}

void thread_pool::resume() {
  const troupe::checked_lock lock(mutex_);
  --blocked_;
}

void thread_pool::stop() {
  std::vector<std::thread> ending;
  {
    const troupe::checked_lock lock(mutex_);
    stopped_ = true;
    ending.swap(threads_);
  }
  wake_.notify_all();
  for (auto& each : ending) each.join();
}

std::size_t thread_pool::size() const {
  const troupe::checked_lock lock(mutex_);
  return threads_.size();
}

std::size_t thread_pool::idle() const {
  const troupe::checked_lock lock(mutex_);
  return idle_;
}

}  // namespace torchtroupe
