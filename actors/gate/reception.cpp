// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/reception.hpp>

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/actors/gate/credentials.hpp>
#include <troupe/actors/support/machine_address.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::gate {

namespace {

using clock = std::chrono::steady_clock;

/// The priority of the thread, as nice(1) counts: other threads run first.
constexpr int nice_level = 5;

/// An alert of TLS: fatal, handshake failure.
constexpr unsigned char handshake_expected[] = {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28};

std::size_t most_at_once() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return reception::most;
  return std::max<std::size_t>(1, std::min<std::size_t>(reception::most, limit.rlim_cur / 8));
}

std::string too_many(std::size_t limit) {
  return "more than " + std::to_string(limit) +
         " connections wait at the gate, most of them from this address, and it was the oldest";
}

}  // namespace

struct reception::state {
  struct guest {
    support::owned_descriptor socket;
    std::uint64_t listener;
    clock::time_point since;
    std::string address = {};                        // of the caller; known even after the caller has left
    std::string origin = {};                         // the network of the address
    std::unique_ptr<tls_session> session = nullptr;  // once a byte has come
    short wants = POLLIN;

    clock::time_point until() const { return since + (session ? patience : patience_for_first_byte); }
  };

  /// The connection that has to leave `line` first: the oldest one of the networks that have the most connections in `line`.
  /// `line` begins with its oldest connection.
  static std::deque<guest>::iterator first_to_leave(std::deque<guest>& line) {
    std::unordered_map<std::string_view, std::size_t> count;
    for (const auto& each : line) ++count[each.origin];
    std::size_t most_of_one = 0;
    for (const auto& [origin, of_origin] : count) most_of_one = std::max(most_of_one, of_origin);
    return std::find_if(line.begin(), line.end(), [&](const guest& each) { return count[each.origin] == most_of_one; });
  }

  state(std::shared_ptr<const credentials> proof, receivers receiving)
      : own(std::move(proof)), to(std::move(receiving)), bell(support::make_bell()) {
    if (!bell) throw std::system_error(errno, std::generic_category(), "eventfd");
  }

  void run() {
    ::pthread_setname_np(::pthread_self(), "troupe.gate");
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nice_level);
    while (!over) try {
        take_in();
        wait();
      } catch (const std::exception& problem) {
        recover(problem.what());
      }
  }

  /// Called if there was no memory. Connections that were moving from one list to another are closed by now. This function
  /// removes their empty entries, and waits a moment for more memory.
  void recover(const char* problem) noexcept {
    std::erase_if(guests, [](const guest& each) { return !each.socket; });
    {
      checked_lock lock(mutex);
      std::erase_if(arrived, [](const guest& each) { return !each.socket; });
    }
    try {
      to.refused({std::string("connections at the gate were closed: ") + problem});
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is no memory to say it either
    }
    constexpr int moment_ms = 100;
    ::poll(nullptr, 0, moment_ms);
  }

  void take_in() {
    std::size_t never_in = 0;
    {
      checked_lock lock(mutex);
      std::move(arrived.begin(), arrived.end(), std::back_inserter(guests));
      arrived.clear();
      never_in = std::exchange(turned_away, 0);
    }
    if (never_in > 0)
      to.refused({std::to_string(never_in) + " connections were closed unread: they came faster than the gate takes them in"});
    close_surplus();
    at_gate = guests.size();
  }

  /// Closes connections until the number of the connections is within the limit.
  void close_surplus() {
    for (const auto limit = most_at_once(); guests.size() > limit;) {
      const auto leaves = first_to_leave(guests);
      refuse(*leaves, too_many(limit));
      guests.erase(leaves);
    }
  }

  void wait() {
    std::vector<pollfd> sockets{{bell.get(), POLLIN, 0}};
    auto until = clock::time_point::max();
    for (const auto& each : guests) {
      sockets.push_back({each.socket.get(), each.wants, 0});
      until = std::min(until, each.until());
    }
    const auto left = guests.empty() ? std::chrono::milliseconds(-1)
                                     : std::chrono::ceil<std::chrono::milliseconds>(until - std::min(until, clock::now()));
    if (::poll(sockets.data(), sockets.size(), static_cast<int>(left.count())) < 0) return;
    if (sockets[0].revents != 0) support::quiet(bell.get());
    const auto now = clock::now();
    std::deque<guest> stay;
    for (std::size_t i = 0; i < guests.size(); ++i) {
      auto& each = guests[i];
      const bool goes_on = sockets[i + 1].revents == 0 || go_on(each);
      if (goes_on && each.until() <= now)
        give_up(each);
      else if (goes_on)
        stay.push_back(std::move(each));
    }
    guests.swap(stay);
    at_gate = guests.size();
  }

  /// Whether the first bytes of a connection can be those of a ClientHello of TLS. Costs one system call, and takes no byte.
  static bool may_begin_tls(int socket) {
    constexpr unsigned char handshake = 0x16;
    constexpr unsigned char version = 0x03;
    constexpr unsigned char client_hello = 0x01;
    std::array<unsigned char, 6> first{};
    const auto came = ::recv(socket, first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
    return came < 1 || (first[0] == handshake && (came < 2 || first[1] == version) && (came < 6 || first[5] == client_hello));
  }

  /// Goes on with the handshake of a connection. False: the connection was handed over or refused, or has ended.
  bool go_on(guest& one) {
    try {
      if (!one.session && !may_begin_tls(one.socket.get())) {
        refuse(one, "it does not speak TLS 1.3: it has no certificate, or is no troupe node");
        return false;
      }
      if (!one.session) one.session = std::make_unique<tls_session>(own, one.socket.get(), end::called);
      switch (one.session->shake_hands()) {
        case tls_session::progress::wants_to_read:
          one.wants = POLLIN;
          return true;
        case tls_session::progress::wants_to_write:
          one.wants = POLLOUT;
          return true;
        case tls_session::progress::proven:
          to.proven({std::move(one.socket), std::move(one.session)}, one.listener);
          return false;
        case tls_session::progress::failed:
          if (!one.session->problem().has_ended) refuse(one, one.session->problem().why);
          return false;
      }
    } catch (const std::exception&) {
      refuse(one, "there was no memory for its handshake");
    }
    return false;
  }

  void give_up(guest& one) {
    if (one.session) return refuse(one, "its handshake was not over after " + std::to_string(patience.count() / 1000) + " s");
    ::send(one.socket.get(), handshake_expected, sizeof handshake_expected, MSG_NOSIGNAL | MSG_DONTWAIT);
    refuse(one, "it has not begun the handshake of TLS within " + std::to_string(patience_for_first_byte.count() / 1000) +
                  " s: a node without certificates, or no node");
  }

  void refuse(const guest& one, const std::string& why) { to.refused({"the program at " + one.address + ": " + why}); }

  const std::shared_ptr<const credentials> own;
  const receivers to;
  const support::owned_descriptor bell;
  std::atomic<bool> over{false};
  std::atomic<std::size_t> at_gate{0};
  std::deque<guest> guests;  // used by the thread only; the oldest first

  checked_mutex mutex;
  std::deque<guest> arrived TROUPE_GUARDED_BY(mutex);
  std::size_t turned_away TROUPE_GUARDED_BY(mutex) = 0;
  std::thread thread TROUPE_GUARDED_BY(mutex);
};

reception::reception(std::shared_ptr<const credentials> own, receivers to)
    : state_(std::make_unique<state>(std::move(own), std::move(to))) {}

reception::~reception() {
  state_->over = true;
  support::ring(state_->bell.get());
  if (state_->thread.joinable()) state_->thread.join();
}

void reception::admit(support::owned_descriptor socket, std::uint64_t listener) {
  auto address = support::other_end_for_text(socket.get());
  auto origin = support::network_of_other_end(socket.get());
  {
    checked_lock lock(state_->mutex);
    if (!state_->thread.joinable()) state_->thread = std::thread([all = state_.get()] { all->run(); });
    auto& arrived = state_->arrived;
    arrived.push_back({std::move(socket), listener, clock::now(), std::move(address), std::move(origin)});
    if (arrived.size() > most_at_once()) {
      arrived.erase(state::first_to_leave(arrived));
      ++state_->turned_away;
    }
  }
  support::ring(state_->bell.get());
}

std::size_t reception::open_handshakes() const { return state_->at_gate; }

}  // namespace troupe::gate
