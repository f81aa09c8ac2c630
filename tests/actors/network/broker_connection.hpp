// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/receive_policy.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/network/posted_work.hpp"

namespace troupe::test {

inline std::string some_bytes(std::size_t count) {
  std::string result(count, '\0');
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<char>(i * 7 + i / 251);
  return result;
}

inline settings without_shared_memory() {
  settings result;
  result.shared_memory = false;
  return result;
}

/// Makes a socket that is connected to `port` on loopback.
inline int called_on_loopback(std::uint16_t port) {
  const int result = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval no_longer{long_enough.count(), 0};
  ::setsockopt(result, SOL_SOCKET, SO_RCVTIMEO, &no_longer, sizeof no_longer);
  BOOST_REQUIRE(::connect(result, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  return result;
}

/// Writes the bytes and flushes the connection.
inline void write_in(caf::io::broker* self, caf::io::connection_handle to, const std::string& bytes) {
  self->write(to, bytes.size(), bytes.data());
  self->flush(to);
}

/// A broker with one connection. `call` makes the other end of the connection and returns its socket, or -1 if it has none.
class broker_connection {
 public:
  std::function<void(caf::io::broker*, const std::string&)> on_data;  // runs in the broker
  std::function<void(caf::io::broker*)> on_passive;                   // runs in the broker
  caf::io::connection_handle handle;
  int closed = 0;  // how often the broker was told that the connection is closed
  int client = -1;

  explicit broker_connection(caf::io::receive_policy::config wanted, const settings& options = {},
                             const std::function<int(std::uint16_t)>& call = called_on_loopback)
      : wanted_(wanted), config_(options) {
    std::promise<std::uint16_t> port;
    run([&](caf::io::broker* self) { port.set_value(self->add_tcp_doorman(0, "127.0.0.1")->second); });
    client = call(port.get_future().get());
    BOOST_REQUIRE((connected_.get_future().wait_for(long_enough) == std::future_status::ready));
  }

  ~broker_connection() {
    if (client >= 0) ::close(client);
    caf::anon_send_exit(broker_, caf::exit_reason::user_shutdown);
  }

  void run(const std::function<void(caf::io::broker*)>& work) {
    run_in(broker_, [&] { work(self_); });
  }
  /// Returns when the broker has handled all messages that were sent to it before.
  void settle() {
    run([](caf::io::broker*) {});
  }

  /// Sends bytes to the broker.
  void send(const std::string& bytes) const {
    BOOST_REQUIRE(::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  /// Makes the broker write bytes.
  void write(const std::string& bytes) {
    run([&](caf::io::broker* self) { write_in(self, handle, bytes); });
  }
  /// Returns bytes that the broker wrote and that came by TCP: `most` bytes, or fewer if the connection ends or is silent for
  /// `long_enough`.
  std::string receive(std::size_t most) const {
    std::string result(most, '\0');
    std::size_t came = 0;
    while (came < most) {
      const auto bytes = ::recv(client, result.data() + came, most - came, 0);
      if (bytes <= 0) break;
      came += static_cast<std::size_t>(bytes);
    }
    result.resize(came);
    return result;
  }

  /// Closes the end of the client.
  void close_client() { ::close(std::exchange(client, -1)); }
  /// Waits until the broker is told that the connection is closed.
  bool is_closed() {
    int told = 0;
    return becomes_true(
      [&] {
        run([&](caf::io::broker*) { told = closed; });
        return told > 0;
      },
      long_enough);
  }

 private:
  caf::io::receive_policy::config wanted_;
  nodes::system_config config_;
  caf::actor_system system_{config_};
  std::promise<void> connected_;
  caf::io::broker* self_ = nullptr;  // used in the broker
  caf::actor broker_ = system_.middleman().spawn_broker([this](caf::io::broker* self) -> caf::behavior {
    self_ = self;
    return {
      [](const posted_work& what) { (*what.run)(); },
      [=, this](const caf::io::new_connection_msg& came) {
        handle = came.handle;
        self->configure_read(handle, wanted_);
        connected_.set_value();
      },
      [=, this](const caf::io::new_data_msg& came) { on_data(self, std::string(came.buf.begin(), came.buf.end())); },
      [=, this](const caf::io::connection_passivated_msg&) { on_passive(self); },
      [this](const caf::io::connection_closed_msg&) { ++closed; },
      [](const caf::io::acceptor_closed_msg&) {},
    };
  });
};

/// The bytes that a broker got. The test waits until there are as many as expected.
class inbox {
 public:
  explicit inbox(std::size_t expected) : expected_(expected) {}

  // Called in the broker:
  void add(const std::string& bytes) {
    got_ += bytes;
    if (got_.size() >= expected_ && !std::exchange(told_, true)) full_.set_value();
  }
  bool has_more_than(std::size_t bytes) const { return got_.size() > bytes; }
  void forget() { std::string().swap(got_); }

  std::string all() {
    BOOST_REQUIRE((full_.get_future().wait_for(long_enough) == std::future_status::ready));
    return got_;
  }

 private:
  std::size_t expected_;
  std::string got_;
  bool told_ = false;
  std::promise<void> full_;
};

}  // namespace troupe::test
