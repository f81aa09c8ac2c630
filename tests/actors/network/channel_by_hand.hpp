// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>
#include <caf/io/receive_policy.hpp>

#include <troupe/actors/network/memory_channel.hpp>
#include <troupe/actors/network/watched_connections.hpp>

#include "actors/network/broker_connection.hpp"

namespace troupe::test {

/// The calling end of a connection, without a scribe: the test itself reads and writes the shared memory.
class end_by_hand {
 public:
  network::channel_with_bell met;

  /// Opens the listener of the socket `caller`. To be called before the caller sends its first byte.
  explicit end_by_hand(int caller) : listener_(network::channel_listener::open(caller)) {
    BOOST_REQUIRE(listener_.has_value());
  }

  void take_channel() {
    const auto has_channel = [&] {
      met = listener_->answer();
      return met.channel != nullptr;
    };
    BOOST_REQUIRE(becomes_true(has_channel, long_enough));
  }

  void write(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const auto put = met.channel->outgoing.write(bytes.data() + at, bytes.size() - at).value();
      at += put;
      if (put > 0 && met.channel->outgoing.has_to_wake_reader()) ring();
      if (put == 0 && met.channel->outgoing.may_sleep()) BOOST_REQUIRE(is_rung());
    }
  }

  std::string read(std::size_t bytes) {
    std::string result(bytes, '\0');
    for (std::size_t at = 0; at < bytes;) {
      const auto came = met.channel->incoming.read(result.data() + at, bytes - at).value();
      at += came;
      if (came > 0 && met.channel->incoming.has_to_wake_writer()) ring();
      if (came > 0 || !met.channel->incoming.may_sleep()) continue;
      BOOST_REQUIRE(is_rung());
      met.channel->incoming.wake();
    }
    return result;
  }

  void ring() const {
    const char any = 0;
    ::send(met.bell.get(), &any, 1, MSG_NOSIGNAL);
  }

  /// Waits until the other end rings the bell. False if it does not ring within `long_enough`.
  bool is_rung() const {
    pollfd bell{met.bell.get(), POLLIN, 0};
    std::array<char, 64> rings;
    return ::poll(&bell, 1, static_cast<int>(std::chrono::milliseconds(long_enough).count())) == 1 &&
           ::recv(met.bell.get(), rings.data(), rings.size(), MSG_DONTWAIT) > 0;
  }

 private:
  std::optional<network::channel_listener> listener_;
};

/// A connection to a broker. The caller is an end_by_hand. It has sent `first` by TCP, and took the channel after the broker
/// got `first`.
struct channel_to_broker {
  explicit channel_to_broker(caf::io::receive_policy::config wanted, const std::string& first = "first")
      : to(wanted), end(to.client) {
    std::promise<void> heard;
    std::size_t left = first.size();
    to.on_data = [&](caf::io::broker*, const std::string& bytes) {
      left -= bytes.size();
      if (left == 0) heard.set_value();
    };
    to.send(first);
    BOOST_REQUIRE((heard.get_future().wait_for(long_enough) == std::future_status::ready));
    on_data([](caf::io::broker*, const std::string&) {});
    end.take_channel();
  }

  void on_data(std::function<void(caf::io::broker*, const std::string&)> handler) {
    to.run([&](caf::io::broker*) { to.on_data = std::move(handler); });
  }
  bool is_closed() { return to.is_closed(); }

  /// Keeps the network thread awake until the quiet connection is no longer watched. Calls `check` in the broker meanwhile.
  void until_unwatched(const std::function<void(caf::io::broker*)>& check = [](caf::io::broker*) {}) {
    const auto unwatched = std::chrono::steady_clock::now() + 2 * network::watched_connections::watched_for;
    while (std::chrono::steady_clock::now() < unwatched) to.run(check);
  }

  broker_connection to;
  end_by_hand end;
};

/// How many ends of channels this process has mapped.
inline int channels_of_this_process() {
  std::ifstream maps("/proc/self/maps");
  int result = 0;
  for (std::string line; std::getline(maps, line);) result += line.find("memfd:troupe channel") != std::string::npos ? 1 : 0;
  return result;
}

}  // namespace troupe::test
