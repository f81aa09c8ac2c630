// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <mutex>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/test_multiplexer.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <troupe/actors/nodes/system_config.hpp>

namespace troupe::test {

/// CAF's test network, where the test says which broker runs next. It opens no socket. A broker may be woken by any thread.
class drawn_network final : public caf::io::network::test_multiplexer {
 public:
  using caf::io::network::test_multiplexer::test_multiplexer;
  ~drawn_network() override {
    for (auto* each : jobs_) caf::intrusive_ptr_release(each);
  }

  /// The number of brokers that have a message.
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
  }
  /// Lets this broker handle a message. Pre: `which` is less than size().
  void let_run(std::size_t which) {
    auto* const next = take(which);
    if (next->resume(this, 1) == caf::resumable::resume_later)
      exec_later(next);
    else
      caf::intrusive_ptr_release(next);
  }

 protected:
  /// Takes over a reference of the caller.
  void exec_later(caf::resumable* job) override {
    if (job->subtype() != caf::resumable::io_actor && job->subtype() != caf::resumable::function_object)
      return system().scheduler().enqueue(job);
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
  }

 private:
  caf::resumable* take(std::size_t which) {
    const std::lock_guard lock(mutex_);
    const auto at = std::next(jobs_.begin(), static_cast<std::ptrdiff_t>(which));
    auto* const result = *at;
    jobs_.erase(at);
    return result;
  }

  mutable std::mutex mutex_;  // guards jobs_
  std::list<caf::resumable*> jobs_;
};

/// An actor system whose actors and brokers run only when the test says so. With `threads` calls, bursts and sums have threads, as in a node.
struct deterministic_system {
  explicit deterministic_system(bool threads = false) : config(threads) {}

  /// Runs one of the actors and brokers that have something to do: the one with the number `drawn`, modulo their number. False if there is
  /// none.
  bool step(std::uint64_t drawn = 0) {
    auto& jobs = scheduler().jobs;
    const auto all = jobs.size() + network().size();
    if (all == 0) return false;
    const auto which = drawn % all;
    if (which >= jobs.size()) {
      network().let_run(which - jobs.size());
      return true;
    }
    std::swap(jobs.front(), jobs[which]);
    return scheduler().try_run_once();
  }
  void run() {
    while (step()) continue;
  }

  caf::scheduler::test_coordinator& scheduler() { return dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler()); }
  drawn_network& network() { return dynamic_cast<drawn_network&>(system.middleman().backend()); }

  struct with_network : nodes::system_config {
    explicit with_network(bool threads) : system_config(for_tests{}) {
      load<caf::io::middleman, drawn_network>();
      caf::put(content, "troupe.no-threads", !threads);
    }
  };
  with_network config;
  caf::actor_system system{config};
};

}  // namespace troupe::test
