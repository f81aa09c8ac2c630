// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/dial_thread.hpp>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <caf/sec.hpp>

#include <troupe/actors/network/address_race.hpp>
#include <troupe/actors/support/host_lookup.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::network {

class dial_thread::state : public std::enable_shared_from_this<state> {
 public:
  state() : bell_(support::make_bell()) {
    if (!bell_) throw std::system_error(errno, std::generic_category(), "eventfd");
  }

  owner new_owner() {
    checked_lock lock(mutex_);
    return ++last_;
  }

  void dial(owner who, gate::connection_gate gate, std::string host, std::uint16_t port, clock::time_point deadline,
            receiver done) {
    auto found = support::read_address(host, port);
    checked_lock lock(mutex_);
    const auto number = ++last_;
    const auto at = attempts_
                      .emplace(number, attempt{who, std::move(host), port, deadline, std::move(done),
                                               address_race(std::move(gate)), std::nullopt, false})
                      .first;
    try {
      found ? begin(at->second, std::move(*found)) : look_up(number, at->second);
      if (!runs_ && !at->second.is_over) std::thread([self = shared_from_this()] { self->run(); }).detach();
    } catch (...) {
      end(at);
      throw;
    }
    if (at->second.is_over) {
      end(at);
      return;
    }
    runs_ = true;
    support::ring(bell_.get());
  }

  void give_up(owner who) {
    checked_lock lock(mutex_);
    for (auto at = attempts_.begin(); at != attempts_.end();) at = at->second.who == who ? end(at) : std::next(at);
    support::ring(bell_.get());
  }

 private:
  struct attempt {
    owner who;
    std::string host;
    std::uint16_t port;
    clock::time_point deadline;
    receiver done;
    address_race race;
    std::optional<support::name_lookups::ticket> lookup;  // while the name is looked up
    bool is_over;
  };
  using attempts = std::map<std::uint64_t, attempt>;

  void run() {
    ::pthread_setname_np(::pthread_self(), "troupe.dial");
    checked_unique_lock lock(mutex_);
    while (runs_) {
      try {
        wait();
      } catch (const std::exception& reason) {  // no memory
        for (auto& [number, each] : attempts_) finish(each, {{}, make_error(reason, "dialling"), {}});
      }
      sweep();
    }
  }

  /// Waits until a socket is ready, the bell rings, or an attempt reaches its deadline or its next_look(). Then goes on
  /// with these attempts.
  void wait() TROUPE_REQUIRES(mutex_) {
    std::vector<pollfd> sockets{{bell_.get(), POLLIN, 0}};
    std::vector<std::uint64_t> numbers{0};
    auto until = clock::time_point::max();
    for (const auto& [number, each] : attempts_) {
      until = each.is_over ? clock::time_point::min() : std::min({until, each.deadline, each.race.next_look()});
      for (const auto& probe : each.race.probes()) {
        sockets.push_back({probe->socket(), probe->events(), 0});
        numbers.push_back(number);
      }
    }
    mutex_.unlock();
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(
      std::clamp<clock::duration>(until - std::min(until, clock::now()), {}, std::chrono::hours(1)));
    const auto ready = ::poll(sockets.data(), sockets.size(), static_cast<int>(patience.count()));
    mutex_.lock();
    if (ready > 0 && sockets[0].revents != 0) support::quiet(bell_.get());
    const auto now = clock::now();
    for (std::size_t i = 1; ready > 0 && i < sockets.size(); ++i) {
      const auto found = sockets[i].revents != 0 ? attempts_.find(numbers[i]) : attempts_.end();
      if (found != attempts_.end() && !found->second.is_over) take(found->second, found->second.race.go_on(sockets[i].fd, now));
    }
    for (auto& [number, each] : attempts_) {
      if (!each.is_over) take(each, each.race.look(now));
      if (each.deadline <= now) finish(each, {{}, caf::sec::request_timeout, {}});
    }
  }

  /// Erases the attempts that are over. If no attempt is left, clears runs_. Then this thread ends, and the next dial() begins
  /// another thread.
  void sweep() TROUPE_REQUIRES(mutex_) {
    for (auto at = attempts_.begin(); at != attempts_.end();) at = at->second.is_over ? end(at) : std::next(at);
    runs_ = !attempts_.empty();
  }

  void look_up(std::uint64_t number, attempt& of) {
    of.lookup = lookups_.add(of.host, of.port, [self = shared_from_this(), number](support::name_lookups::outcome result) {
      self->looked_up(number, std::move(result));
    });
  }

  void looked_up(std::uint64_t number, support::name_lookups::outcome result) {
    checked_lock lock(mutex_);
    const auto found = attempts_.find(number);
    if (found == attempts_.end()) return;
    auto& of = found->second;
    of.lookup = std::nullopt;
    if (!result.failure)
      begin(of, std::move(result.found));
    else
      try {
        std::rethrow_exception(result.failure);
      } catch (const std::exception& reason) {
        finish(of, {{}, make_error(reason, "dialling"), {}});
      }
    support::ring(bell_.get());
  }

  void begin(attempt& of, support::host_lookup found) { take(of, of.race.begin(std::move(found), clock::now())); }

  void take(attempt& of, address_race::verdict verdict) {
    switch (verdict) {
      case address_race::verdict::undecided:
        break;
      case address_race::verdict::node:
        // CAF's middleman tries only the first address of a host name. So the outcome holds the address that answered.
        if (auto address = of.race.winner().reached(); !address.empty()) of.host = std::move(address);
        finish(of, {of.host, {}, of.race.winner().release()});
        break;
      case address_race::verdict::stranger:
        finish(of, {{}, caf::sec::unexpected_message, {}});
        break;
      case address_race::verdict::nobody:
        finish(of, {{}, of.race.problem(), {}});
        break;
    }
  }

  void finish(attempt& of, outcome result) {
    if (std::exchange(of.is_over, true)) return;
    of.done(std::move(result));
    of.done = nullptr;
  }

  attempts::iterator end(attempts::iterator at) TROUPE_REQUIRES(mutex_) {
    if (at->second.lookup) lookups_.give_up(*at->second.lookup);
    return attempts_.erase(at);
  }

  const support::owned_descriptor bell_;
  support::name_lookups lookups_;
  checked_mutex mutex_;
  attempts attempts_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t last_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool runs_ TROUPE_GUARDED_BY(mutex_) = false;  // whether a thread serves attempts_; if not, dial() begins one
};

std::shared_ptr<dial_thread> dial_thread::of_process() {
  static checked_mutex mutex;
  static std::vector<std::shared_ptr<dial_thread>> all TROUPE_GUARDED_BY(mutex);
  static pid_t process TROUPE_GUARDED_BY(mutex) = 0;
  checked_lock lock(mutex);
  if (std::exchange(process, ::getpid()) != ::getpid())  // a forked process does not have the threads of its parent
    all.push_back(std::make_shared<dial_thread>());
  return all.back();
}

dial_thread::dial_thread() : state_(std::make_shared<state>()) {}
dial_thread::~dial_thread() = default;

dial_thread::owner dial_thread::new_owner() { return state_->new_owner(); }
void dial_thread::dial(owner who, gate::connection_gate gate, std::string host, std::uint16_t port, clock::time_point deadline,
                       receiver done) {
  state_->dial(who, std::move(gate), std::move(host), port, deadline, std::move(done));
}
void dial_thread::give_up(owner who) { state_->give_up(who); }

}  // namespace troupe::network
