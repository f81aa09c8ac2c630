// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/thread_pool.hpp"

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
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      tasks_.push_back(std::move(task));
      if (computing_ < static_cast<std::ptrdiff_t>(most_)) start_thread();
      return;
    }
  }
  task();
}

// A thread that is woken counts as idle until it runs. Pre: mutex_ is locked.
void thread_pool::start_thread() {
  if (tasks_.size() > idle_)
    threads_.emplace_back([this] { serve(); });
  else
    wake_.notify_one();
}

void thread_pool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return stopped_ || (!tasks_.empty() && computing_ < static_cast<std::ptrdiff_t>(most_)); });
    --idle_;
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    ++computing_;
    lock.unlock();
    {
      const waiting_thread told([this] { count(-1); }, [this] { count(+1); });
      task();
      task = nullptr;
    }
    lock.lock();
    --computing_;
  }
}

void thread_pool::count(int computing) {
  const std::lock_guard lock(mutex_);
  computing_ += computing;
  if (computing < 0 && !tasks_.empty() && !stopped_) start_thread();
}

void thread_pool::stop() {
  std::vector<std::thread> ending;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    ending.swap(threads_);
  }
  wake_.notify_all();
  for (auto& each : ending) each.join();
}

std::size_t thread_pool::size() const {
  const std::lock_guard lock(mutex_);
  return threads_.size();
}

std::size_t thread_pool::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_;
}

}  // namespace torchtroupe
