// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/thread_pool.hpp"

#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include <troupe/messages/errors.hpp>

namespace torchtroupe {

struct waiting_thread::account final : troupe::blocking_observer {
  std::function<void()> told_blocked, told_resumed;
  std::mutex mutex;
  std::size_t open = 0;
  bool over = false;

  static std::shared_ptr<account>& of_thread() {
    static thread_local std::shared_ptr<account> own;
    return own;
  }
  void blocked() override {
    const std::lock_guard lock(mutex);
    if (open == 0) told_blocked();
    ++open;
  }
  void resumed() override {
    const std::lock_guard lock(mutex);
    if (--open == 0 && !over) told_resumed();
  }
};

waiting_thread::waiting_thread(std::function<void()> blocked, std::function<void()> resumed)
    : account_(std::make_shared<account>()),
      outer_(std::exchange(account::of_thread(), account_)),
      outer_observer_(std::exchange(account::current(), account_.get())) {
  account_->told_blocked = std::move(blocked);
  account_->told_resumed = std::move(resumed);
}

waiting_thread::waiting_thread()
    : waiting_thread([outer = account::current()] { outer->blocked(); }, [outer = account::current()] { outer->resumed(); }) {}

waiting_thread::~waiting_thread() {
  account::current() = outer_observer_;
  account::of_thread() = std::move(outer_);
  const std::lock_guard lock(account_->mutex);
  account_->over = true;
  if (account_->open > 0) account_->told_resumed();
}

std::function<void()> waiting_thread::request() {
  auto own = account::of_thread();
  if (!own) return {};
  own->blocked();
  return [own] { own->resumed(); };
}

thread_pool::thread_pool(std::size_t most) : most_(most) {
  const troupe::checked_lock lock(mutex_);
  add_thread();
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
  if (tasks_.size() <= idle_ || threads_.size() - blocked_ >= most_) return wake_.notify_one();
  try {
    add_thread();
  } catch (const troupe::error&) {
    wake_.notify_one();  // a thread that does not wait takes the task, perhaps later (QK-3)
  }
}

void thread_pool::add_thread() {
  try {
    threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error& refused) {
    throw troupe::error(troupe::errc::function_failed,
                        "a worker gets no thread for callbacks beside the " + std::to_string(threads_.size()) + " that wait (" +
                          refused.code().message() +
                          "); nest fewer requests, or raise the limit on the process's threads or memory");
  }
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
  if (!stopped_ && threads_.size() == blocked_ + 1) add_thread();
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
