// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/burst_threads.hpp>

#include <algorithm>
#include <exception>
#include <iterator>

#include <caf/send.hpp>

namespace troupe::services {

namespace {

/// Sends the bursts to their threads. To be called without the lock, because a message may wake a thread.
template <class Begins>
void hand_out(Begins all) {
  for (auto& each : all) caf::anon_send(each.thread, std::move(each.what));
}

}  // namespace

void burst_threads::start(std::size_t limit, std::function<actor()> spawn) {
  const checked_lock lock(mutex_);
  spawn_ = std::move(spawn);
  while (all_.size() < limit) all_.push_back(spawn_());
  idle_ = all_;
  limit_ = limit;
}

void burst_threads::post(job what) {
  std::vector<begin> now;
  {
    const checked_lock lock(mutex_);
    if (stopped_) return;
    waiting_.push_back(std::move(what));
    now = due();
  }
  hand_out(std::move(now));
}

burst_threads::order burst_threads::ended(const actor& thread) {
  const checked_lock lock(mutex_);
  --computing_;
  if (!waiting_.empty() && computing_ < static_cast<std::ptrdiff_t>(limit_)) {
    ++computing_;
    order result{std::move(waiting_.front())};
    waiting_.pop_front();
    return result;
  }
  if (stopped_) return {};
  if (idle_.size() < limit_ + most_spare) {
    idle_.push_back(thread);
    return {};
  }
  std::erase(all_, thread);
  return {std::nullopt, true};
}

void burst_threads::blocked() {
  std::vector<begin> now;
  {
    const checked_lock lock(mutex_);
    --computing_;
    now = due();
  }
  hand_out(std::move(now));
}

void burst_threads::resumed() {
  const checked_lock lock(mutex_);
  ++computing_;
}

std::vector<burst_threads::actor> burst_threads::stop() {
  std::deque<job> never_run;  // destroyed after the lock is released
  const checked_lock lock(mutex_);
  stopped_ = true;
  never_run.swap(waiting_);
  spawn_ = nullptr;
  idle_.clear();
  return std::exchange(all_, {});
}

/// Takes the bursts that may begin now, with a thread for each.
std::vector<burst_threads::begin> burst_threads::due() {
  std::vector<begin> result;
  while (!waiting_.empty() && computing_ < static_cast<std::ptrdiff_t>(limit_)) {
    if (idle_.empty()) {
      if (all_.size() >= most_threads) break;
      try {
        all_.push_back(spawn_());
      } catch (const std::exception&) {
        break;  // the next thread that ends its burst takes this burst
      }
      idle_.push_back(all_.back());
    }
    result.push_back({std::move(idle_.back()), std::move(waiting_.front())});
    idle_.pop_back();
    waiting_.pop_front();
    ++computing_;
  }
  return result;
}

}  // namespace troupe::services
