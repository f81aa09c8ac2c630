// SPDX-License-Identifier: BSD-3-Clause
#include "support/recording_relay.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::test {

namespace {

using support::owned_descriptor;

int expect(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

owned_descriptor new_socket() { return owned_descriptor(expect(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")); }

sockaddr_in on_loopback(std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  result.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return result;
}

}  // namespace

struct recording_relay::state {
  owned_descriptor listening = new_socket();
  std::uint16_t to = 0;
  std::string sent;
  std::thread thread;

  /// False: the connection is over.
  static bool pass_on(int from, int into, std::string* record) {
    std::array<char, 65536> bytes{};
    const auto came = ::recv(from, bytes.data(), bytes.size(), 0);
    if (came <= 0) return false;
    if (record != nullptr) record->append(bytes.data(), static_cast<std::size_t>(came));
    for (ssize_t gone = 0; gone < came;) {
      const auto went = ::send(into, bytes.data() + gone, static_cast<std::size_t>(came - gone), MSG_NOSIGNAL);
      if (went < 0) return false;
      gone += went;
    }
    return true;
  }

  /// Calls that only look whether somebody listens end at once: the one that counts is the longest.
  void run() {
    for (;;) {
      const owned_descriptor caller(::accept(listening.get(), nullptr, nullptr));
      if (!caller) return;
      const auto called = new_socket();
      const auto address = on_loopback(to);
      if (::connect(called.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
      std::string record;
      std::array<pollfd, 2> both{pollfd{caller.get(), POLLIN, 0}, pollfd{called.get(), POLLIN, 0}};
      for (bool goes_on = true; goes_on && ::poll(both.data(), both.size(), -1) > 0;)
        goes_on = (both[0].revents == 0 || pass_on(caller.get(), called.get(), &record)) &&
                  (both[1].revents == 0 || pass_on(called.get(), caller.get(), nullptr));
      if (record.size() > sent.size()) sent = std::move(record);
    }
  }
};

recording_relay::recording_relay(std::uint16_t to) : state_(std::make_unique<state>()) {
  const auto address = on_loopback(0);
  expect(::bind(state_->listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
  expect(::listen(state_->listening.get(), 16), "listen");
  state_->to = to;
  state_->thread = std::thread([all = state_.get()] { all->run(); });
}

recording_relay::~recording_relay() { sent(); }

std::uint16_t recording_relay::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  expect(::getsockname(state_->listening.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  return ntohs(address.sin_port);
}

std::string recording_relay::sent() {
  ::shutdown(state_->listening.get(), SHUT_RDWR);
  if (state_->thread.joinable()) state_->thread.join();
  return state_->sent;
}

}  // namespace troupe::test
