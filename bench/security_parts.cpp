// SPDX-License-Identifier: BSD-3-Clause
#include "security_parts.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <troupe/actors/support/owned_descriptor.hpp>

#include "tests/support/hostile_client.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;
using support::owned_descriptor;

/// The first bytes of a ClientHello of 512 bytes.
constexpr std::array<char, 11> begin_of_hello = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, '\xfc', 0x03, 0x03};

owned_descriptor connected(const part_arguments& with) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(with.number("port")));
  owned_descriptor result(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::inet_pton(AF_INET, with.text("address").c_str(), &to.sin_addr) != 1 || !result ||
      ::connect(result.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    throw std::runtime_error("can't connect to " + with.text("address"));
  return result;
}

void tell_ready() {
  std::printf("figure ready 0\n");
  std::fflush(stdout);
}

}  // namespace

void stall_at_the_gate(const part_arguments& with) {
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

void send_hostile_bytes(const part_arguments& with) {
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

void play_hostile_inputs(const part_arguments& with) {
  test::hostile_client player(with.text("address"), static_cast<std::uint16_t>(with.number("port")), with.text("kit"), 1);
  const auto parts = static_cast<int>(with.number("parts"));
  for (int part = 1; part <= parts; ++part) {
    player.play(static_cast<std::uint64_t>(with.number("count")) / static_cast<std::uint64_t>(parts));
    std::printf("figure played_%d %llu\n", part, static_cast<unsigned long long>(player.connections()));
    std::fflush(stdout);
  }
}

}  // namespace troupe::bench
