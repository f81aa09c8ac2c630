// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/name_lookups.hpp>

#include <pthread.h>

#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe::support {

struct name_lookups::state {
  struct name {
    std::string host;
    std::uint16_t port;
    std::function<void(outcome)> done;
  };

  std::mutex mutex;  // guards what follows
  std::map<ticket, name> waiting;
  ticket last = 0;
  std::size_t threads = 0;
};

name_lookups::name_lookups() : state_(std::make_shared<state>()) {}

name_lookups::~name_lookups() {
  std::lock_guard lock(state_->mutex);
  state_->waiting.clear();
}

name_lookups::ticket name_lookups::add(std::string host, std::uint16_t port, std::function<void(outcome)> done) {
  std::lock_guard lock(state_->mutex);
  const auto result = ++state_->last;
  const auto at = state_->waiting.emplace(result, state::name{std::move(host), port, std::move(done)}).first;
  if (state_->threads == most_threads) return result;
  try {
    std::thread([all = state_] { run(all); }).detach();
    ++state_->threads;
  } catch (const std::system_error&) {
    if (state_->threads == 0) {
      state_->waiting.erase(at);
      throw;
    }
  }
  return result;
}

void name_lookups::give_up(ticket which) {
  std::lock_guard lock(state_->mutex);
  state_->waiting.erase(which);
}

void name_lookups::run(const std::shared_ptr<state>& all) {
  ::pthread_setname_np(::pthread_self(), "troupe.lookup");
  std::unique_lock lock(all->mutex);
  while (!all->waiting.empty()) {
    const auto next = std::move(all->waiting.extract(all->waiting.begin()).mapped());
    lock.unlock();
    outcome result;
    try {
      result.found = look_up(next.host, next.port);
    } catch (...) {
      result.failure = std::current_exception();
    }
    next.done(std::move(result));
    lock.lock();
  }
  --all->threads;
}

}  // namespace troupe::support
