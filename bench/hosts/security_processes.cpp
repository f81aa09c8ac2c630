// SPDX-License-Identifier: BSD-3-Clause
#include "processes.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <troupe/actors/gate/tls_session.hpp>

#include "../support/peers.hpp"
#include "../support/runs.hpp"
#include "tests/support/hostile_client.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;
using support::owned_descriptor;

/// The first bytes of a ClientHello of 512 bytes.
constexpr std::array<char, 11> begin_of_hello = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, '\xfc', 0x03, 0x03};

owned_descriptor connected(const process_arguments& with) {
  return connected_socket(with.text("address"), static_cast<std::uint16_t>(with.number("port")));
}

void tell_ready() { tell("ready", 0); }

/// One end of a connection that does nothing but move bytes: by TLS if the process has a kit.
class bare_end {
 public:
  bare_end(const process_arguments& with, owned_descriptor socket, gate::end which) : socket_(std::move(socket)) {
    if (with.text("kit").empty()) return;
    session_ = std::make_unique<gate::tls_session>(std::make_shared<gate::credentials>(with.text("kit")), socket_.get(), which);
    if (const auto refused = gate::prove_within(*session_, socket_.get(), patience)) throw std::runtime_error(refused->why);
  }

  void send(const char* from, std::size_t bytes) {
    move(POLLOUT, from + bytes, from, [this](const char* at, std::size_t left) {
      return session_ ? session_->write(at, left, false) : ::send(socket_.get(), at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
  }

  /// Sends what waits here.
  void finish() {
    while (session_ && session_->has_unsent() && !session_->flush()) wait(POLLOUT);
  }

  /// Fills the memory. Returns the bytes that came before the other end closed.
  std::size_t receive(char* to, std::size_t bytes) {
    return move(POLLIN, to + bytes, to, [this](char* at, std::size_t left) {
      return session_ ? session_->read({at, left}, {}) : ::recv(socket_.get(), at, left, MSG_DONTWAIT);
    });
  }

 private:
  static constexpr auto patience = std::chrono::seconds(5);

  void wait(short what) {
    pollfd watched{socket_.get(), what, 0};
    if (::poll(&watched, 1, static_cast<int>(std::chrono::milliseconds(patience).count())) != 1)
      throw std::runtime_error("the other end did nothing for " + std::to_string(patience.count()) + " s");
  }

  template <class Byte, class Move>
  std::size_t move(short what, Byte* end, Byte* at, Move some) {
    const auto begin = at;
    while (at != end) {
      const auto moved = some(at, static_cast<std::size_t>(end - at));
      if (moved == 0) break;
      if (moved > 0)
        at += moved;
      else if (errno == EAGAIN)
        wait(what);
      else
        throw std::system_error(errno, std::generic_category(), "a bare connection");
    }
    return static_cast<std::size_t>(at - begin);
  }

  owned_descriptor socket_;
  std::unique_ptr<gate::tls_session> session_;
};

constexpr std::size_t bulk_bytes = std::size_t{16} << 20;

void stall_at_the_gate(const process_arguments& with) {
  std::vector<owned_descriptor> all(static_cast<std::size_t>(with.number("count")));
  const auto open = [&](owned_descriptor& one) {
    one = connected(with);
    ::send(one.get(), begin_of_hello.data(), begin_of_hello.size(), MSG_NOSIGNAL);
  };
  for (auto& each : all) open(each);
  tell_ready();
  for (;;) {
    std::vector<pollfd> watched;
    for (const auto& each : all) watched.push_back({each.get(), POLLIN, 0});
    ::poll(watched.data(), watched.size(), 1000);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (watched[i].revents != 0) open(all[i]);
  }
}

void send_hostile_bytes(const process_arguments& with) {
  ::setpriority(PRIO_PROCESS, 0, 19);  // what this process computes is not the node's
  std::mt19937 random(1);
  std::string bytes(2048, '\0');
  const auto pause = std::chrono::duration<double>(1 / with.number("rate"));
  const auto begin = clock::now();
  for (std::uint64_t count = 1;; ++count) {
    const auto one = connected(with);
    for (auto& each : bytes) each = static_cast<char>(random());
    if (count % 3 == 0) std::copy(begin_of_hello.begin(), begin_of_hello.end(), bytes.begin());
    if (count % 3 == 1) std::fill_n(bytes.begin(), 64, '\0');
    ::send(one.get(), bytes.data(), 1 + random() % bytes.size(), MSG_NOSIGNAL);
    if (count == 100) tell_ready();
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<clock::duration>(pause * static_cast<double>(count)));
  }
}

void drain_bytes(const process_arguments& with) {
  const auto listening = listening_socket("0.0.0.0", static_cast<std::uint16_t>(with.number("listen")));
  tell_ready();
  bare_end here(with, accepted_socket(listening), gate::end::called);
  std::vector<char> memory(bulk_bytes);
  here.receive(memory.data(), memory.size());  // windows have grown
  const auto begin = clock::now();
  double bytes = 0;
  for (auto came = memory.size(); came == memory.size(); bytes += static_cast<double>(came))
    came = here.receive(memory.data(), memory.size());
  tell("mbit", megabits(bytes, seconds_since(begin)));
}

void pour_bytes(const process_arguments& with) {
  bare_end here(with, connected(with), gate::end::calling);
  const std::vector<char> memory(bulk_bytes, 'x');
  const auto until = clock::now() + std::chrono::duration<double>(with.number("seconds"));
  while (clock::now() < until) here.send(memory.data(), memory.size());
  here.finish();
}

void play_hostile_inputs(const process_arguments& with) {
  test::hostile_client player(with.text("address"), static_cast<std::uint16_t>(with.number("port")), with.text("kit"), 1);
  const auto rounds = static_cast<int>(with.number("rounds"));
  for (int round = 1; round <= rounds; ++round) {
    player.play(static_cast<std::uint64_t>(with.number("count")) / static_cast<std::uint64_t>(rounds));
    tell("played_" + std::to_string(round), static_cast<double>(player.connections()));
  }
  tell("messages", static_cast<double>(player.messages()));
}

}  // namespace

processes_by_name security_processes() {
  return {{"stall", stall_at_the_gate},
          {"strangers", send_hostile_bytes},
          {"drain", drain_bytes},
          {"pour", pour_bytes},
          {"hostile", play_hostile_inputs}};
}

}  // namespace troupe::bench
