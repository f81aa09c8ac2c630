// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <netinet/in.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::bench {

/// A TCP socket of IPv4 that sends each message at once. Throws std::runtime_error.
support::owned_descriptor new_socket();

/// Throws std::runtime_error if the text is no IPv4 address.
sockaddr_in socket_address(const std::string& address, std::uint16_t port);

/// A connection to this address. Throws std::runtime_error if nobody answers.
support::owned_descriptor connected_socket(const std::string& address, std::uint16_t port);

/// A socket that listens at this address; port 0 is any free one. Throws std::runtime_error if the port is taken.
support::owned_descriptor listening_socket(const std::string& address, std::uint16_t port);
std::uint16_t port_of(const support::owned_descriptor& listening);

/// The next connection. It does not outlive an exec, and sends each message at once.
support::owned_descriptor accepted_socket(const support::owned_descriptor& listening);

/// Answers the messages of a bare TCP ping-pong. Listens at `address` (IPv4), tells its port, and takes one connection. Before its
/// messages the process that has connected names their sizes and those of the answers. Returns when the connection closes.
void serve_echo(const std::function<void(std::uint16_t)>& tell_port, const std::string& address = "127.0.0.1");

/// Round trips of bytes and nothing else: the cost of a row if only the network had a cost.
class tcp_floor {
 public:
  explicit tcp_floor(std::uint16_t port, const std::string& address = "127.0.0.1");

  /// The seconds for `trips` round trips, one after another, of `bytes` bytes each way.
  double seconds(int trips, std::size_t bytes) { return seconds(trips, bytes, bytes); }
  /// The same with answers of another size.
  double seconds(int trips, std::size_t bytes, std::size_t answer);

 private:
  support::owned_descriptor socket_;
};

/// Bare CAF with its own network: an actor that answers each text with the text. The actor listens at `address` (IPv4). Tells its port,
/// and returns after `until` has returned. Throws std::runtime_error if the actor can't listen.
void serve_caf_echo(const std::string& address, const std::function<void(std::uint16_t)>& tell_port,
                    const std::function<void()>& until);

/// The connection to serve_caf_echo() of another process. Throws std::runtime_error if there is none.
class caf_link {
 public:
  caf_link(const std::string& address, std::uint16_t port);

  caf::actor_system& system() noexcept { return system_; }
  const caf::actor& echo() const noexcept { return echo_; }

 private:
  struct config : caf::actor_system_config {
    config();
  };

  config config_;
  caf::actor_system system_{config_};
  caf::actor echo_;
};

/// Asks over a link, which has to live as long. For one thread at a time.
class caf_asker {
 public:
  explicit caf_asker(caf_link& by) : echo_(by.echo()), self_(by.system()) {}

  void send(const std::string& text) { open_.push_back(self_->request(echo_, answer_deadline, text)); }
  std::size_t in_flight() const { return open_.size(); }
  /// Waits for the answer to the oldest text that is under way. Throws std::runtime_error if none came within 20 s of send().
  void wait();
  /// Sends the text and waits for its answer. Pre: nothing is under way. Throws as wait().
  void ask(const std::string& text) {
    send(text);
    wait();
  }

 private:
  static constexpr std::chrono::seconds answer_deadline{20};

  caf::actor echo_;
  caf::scoped_actor self_;
  std::deque<decltype(std::declval<caf::scoped_actor&>()->request(std::declval<const caf::actor&>(), answer_deadline,
                                                                  std::declval<const std::string&>()))>
    open_;
};

/// Whether this program was built where gRPC is installed.
bool has_grpc();

/// The file of the program grpc_echo, which calls by gRPC (bench/support/grpc_echo.cpp). Throws std::runtime_error if there is none.
std::string grpc_program();

/// The file of the program tensorpipe_echo, which calls by PyTorch's RPC (bench/support/tensorpipe_echo.cpp).
std::string tensorpipe_program();

/// The microseconds of each call, from the lines that `program` (grpc_echo or tensorpipe_echo) wrote. Throws std::runtime_error
/// unless there are `runs`.
std::vector<double> times_of_echo(const std::string& program, const std::vector<std::string>& lines, int runs);

}  // namespace troupe::bench
