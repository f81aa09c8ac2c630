// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/native/late_answers_test.cpp, tests/python/rpc/agent_test.py
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <troupe/actors/function_table.hpp>
#include <troupe/actors/future.hpp>
#include <troupe/messages/mutex.hpp>

namespace torchtroupe {

/// The calls whose functions have returned without a result. A future of PyTorch may be completed at any time, also after the
/// end of the node; this class stands between the two.
///   LA-1  after close() all calls are answered, and later results change nothing.
class late_answers {
 public:
  using future = troupe::future<troupe::call_reply>;

  std::uint64_t add(future call) {
    troupe::checked_unique_lock lock(mutex_);
    if (closed_) {
      const auto why = *closed_;
      lock.unlock();
      call.set_error(why);
      return 0;
    }
    open_.emplace(++last_, std::move(call));
    return last_;
  }
  void answer(std::uint64_t which, troupe::call_reply with) {
    finish(which, [&](future& call) { call.set_value(std::move(with)); });
  }
  void fail(std::uint64_t which, const troupe::error& why) {
    finish(which, [&](future& call) { call.set_error(why); });
  }
  void close(const troupe::error& why) {
    troupe::checked_unique_lock lock(mutex_);
    closed_ = why;
    auto all = std::exchange(open_, {});
    answering_ += all.size();
    lock.unlock();
    for (auto& [number, call] : all) call.set_error(why);
    lock.lock();
    answering_ -= all.size();
    while (answering_ > 0) answered_.wait(lock);
  }
  std::size_t size() const {
    const troupe::checked_lock lock(mutex_);
    return open_.size();
  }

 private:
  template <class Finish>
  void finish(std::uint64_t which, Finish how) {
    troupe::checked_unique_lock lock(mutex_);
    const auto found = open_.find(which);
    if (found == open_.end()) return;
    auto call = std::move(found->second);
    open_.erase(found);
    ++answering_;
    lock.unlock();
    how(call);
    lock.lock();
    if (--answering_ == 0) answered_.notify_all();
  }

  mutable troupe::checked_mutex mutex_;
  std::condition_variable answered_;
  std::map<std::uint64_t, future> open_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t last_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::optional<troupe::error> closed_ TROUPE_GUARDED_BY(mutex_);  // with what later calls are answered
  std::size_t answering_ TROUPE_GUARDED_BY(mutex_) = 0;            // calls that a thread answers now
};

}  // namespace torchtroupe
