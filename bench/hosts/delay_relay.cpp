// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <exception>
#include <list>

#include "../support/peers.hpp"
#include "processes.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t chunk_bytes = 256 << 10;
constexpr std::size_t most_held = std::size_t{64} << 20;  // in one direction of a connection
constexpr auto longest_wait = std::chrono::seconds(1);

struct chunk {
  clock::time_point due;
  std::vector<char> bytes;
  std::size_t sent = 0;
};

/// The bytes that go from one socket to another.
class direction {
 public:
  direction(int from, int to) : from_(from), to_(to) {}

  bool is_over() const { return is_shut_; }
  int from() const { return from_; }
  int to() const { return to_; }
  bool wants_to_read() const { return !has_ended_ && held_ < most_held; }
  bool wants_to_write() const { return is_blocked_; }
  /// When the next byte has to leave.
  clock::time_point due() const {
    return is_blocked_ || held_chunks_.empty() ? clock::time_point::max() : held_chunks_.front().due;
  }

  /// Returns false if the connection is broken.
  bool read(std::chrono::milliseconds delay) {
    std::vector<char> bytes(chunk_bytes);
    const auto got = ::recv(from_, bytes.data(), bytes.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
      has_ended_ = true;
      return true;
    }
    bytes.resize(static_cast<std::size_t>(got));
    held_ += bytes.size();
    held_chunks_.push_back({clock::now() + delay, std::move(bytes)});
    return true;
  }

  /// Sends what is due. Returns false if the connection is broken.
  bool write() {
    is_blocked_ = false;
    for (const auto now = clock::now(); !held_chunks_.empty() && held_chunks_.front().due <= now;) {
      auto& next = held_chunks_.front();
      const auto sent = ::send(to_, next.bytes.data() + next.sent, next.bytes.size() - next.sent, MSG_NOSIGNAL);
      if (sent < 0) {
        is_blocked_ = errno == EAGAIN;
        return is_blocked_ || errno == EINTR;
      }
      next.sent += static_cast<std::size_t>(sent);
      if (next.sent < next.bytes.size()) continue;
      held_ -= next.bytes.size();
      held_chunks_.pop_front();
    }
    if (has_ended_ && held_chunks_.empty() && !std::exchange(is_shut_, true)) ::shutdown(to_, SHUT_WR);
    return true;
  }

 private:
  int from_;
  int to_;
  std::deque<chunk> held_chunks_;
  std::size_t held_ = 0;
  bool has_ended_ = false;
  bool is_blocked_ = false;
  bool is_shut_ = false;
};

/// A connection that came, and the one that was opened for it.
class pair_of_connections {
 public:
  pair_of_connections(support::owned_descriptor near, support::owned_descriptor far)
      : near_(std::move(near)), far_(std::move(far)), all_{{near_.get(), far_.get()}, {far_.get(), near_.get()}} {
    for (const auto& each : all_) ::fcntl(each.from(), F_SETFL, ::fcntl(each.from(), F_GETFL) | O_NONBLOCK);
  }

  bool is_over() const {
    return is_broken_ || std::all_of(all_.begin(), all_.end(), [](const auto& each) { return each.is_over(); });
  }

  void add_to(std::vector<pollfd>& watched) const {
    for (const auto& each : all_) {
      watched.push_back({each.from(), static_cast<short>(each.wants_to_read() ? POLLIN : 0), 0});
      watched.push_back({each.to(), static_cast<short>(each.wants_to_write() ? POLLOUT : 0), 0});
    }
  }
  clock::time_point due() const { return std::min(all_[0].due(), all_[1].due()); }

  /// `found`: what poll() found, in the order of add_to().
  void act(const pollfd* found, std::chrono::milliseconds delay) {
    for (auto& each : all_) {
      const auto is_readable = ((found++)->revents & (POLLIN | POLLHUP | POLLERR)) != 0;
      ++found;
      if (is_readable && each.wants_to_read() && !each.read(delay)) is_broken_ = true;
      if (!each.write()) is_broken_ = true;
    }
  }

 private:
  support::owned_descriptor near_;
  support::owned_descriptor far_;
  std::vector<direction> all_;
  bool is_broken_ = false;
};

timespec time_until(clock::time_point due) {
  const auto now = clock::now();
  const auto left = due <= now ? clock::duration::zero() : std::min<clock::duration>(due - now, longest_wait);
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

void relay(const process_arguments& with) {
  const auto listening = listening_socket(with.text("listen"), 0);
  const std::chrono::milliseconds delay(static_cast<int>(with.number("ms")));
  tell("ready", port_of(listening));
  std::list<pair_of_connections> all;
  for (std::vector<pollfd> watched;; watched.clear()) {
    auto due = clock::time_point::max();
    for (const auto& each : all) {
      each.add_to(watched);
      due = std::min(due, each.due());
    }
    watched.push_back({listening.get(), POLLIN, 0});
    const auto wait = time_until(due);
    if (::ppoll(watched.data(), watched.size(), &wait, nullptr) < 0) continue;
    const auto* found = watched.data();
    for (auto& each : all) {
      each.act(found, delay);
      found += 4;
    }
    std::erase_if(all, [](const auto& each) { return each.is_over(); });
    if ((watched.back().revents & POLLIN) == 0) continue;
    try {
      if (auto near = accepted_socket(listening))
        all.emplace_back(std::move(near), connected_socket(with.text("to"), static_cast<std::uint16_t>(with.number("port"))));
    } catch (const std::exception&) {
      // Nobody listens there: the connection that came is closed.
    }
  }
}

}  // namespace troupe::bench
