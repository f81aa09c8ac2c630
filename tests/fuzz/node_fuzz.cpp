// SPDX-License-Identifier: BSD-3-Clause
// Sends an input to a whole node: to one behind a gate that lets everybody in, or to one with certificates and a policy, after a proof.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include <ATen/ATen.h>

#include <troupe/actors/gate/credentials.hpp>
#include <troupe/actors/gate/tls_session.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/troupe.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/linear_cluster.hpp"
#include "fuzzer.hpp"
#include "support/hostile_client.hpp"

namespace troupe::fuzz {

namespace {

constexpr std::chrono::seconds patience{20};

const test::own_cluster& cluster() {
  static const auto* const mine = new test::own_cluster;  // for as long as the process
  return *mine;
}

/// A node that other nodes may do everything with, or one that lets the role "guest" do nearly nothing.
node& victim(bool is_guarded) {
  const auto make = [](bool guarded) {
    settings with;
    with.name = "victim";
    with.insecure = !guarded;
    with.shared_memory = false;
    if (guarded) {
      with.certificates = cluster().kit("victim");
      with.policy = cluster().file("policy.json");
      std::ofstream(with.policy) << R"({"roles": {"guest": {"call": ["echo"]}}})";
    }
    with.log_file = "/dev/null";  // the lines are written, because bytes of the input get into them
    with.log_level = severity::debug;
    with.allow_scripts = false;
    with.prepare = [](node& here) {
      here.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
      add_module_type(here, "linear", [](const attributes& values) { return std::make_shared<test::linear>(values); });
    };
    return new node(with);  // its threads live as long as the process
  };
  static std::array<node*, 2> made{};
  auto*& result = made.at(is_guarded ? 1 : 0);
  if (result == nullptr) result = make(is_guarded);
  return *result;
}

/// Sends the bytes by TLS, after a proof as a node of the role "guest".
void send_proven(int socket, const std::string& bytes) {
  static const auto own = std::make_shared<gate::credentials>(cluster().kit_of_role("mallory", "guest"));
  gate::tls_session session(own, socket, gate::end::calling, "victim");
  if (const auto refused = gate::prove_within(session, socket, patience)) {
    std::fprintf(stderr, "expected that the node takes the proof, but: %s\n", refused->why.c_str());
    std::abort();
  }
  session.write(bytes.data(), bytes.size(), false);  // the socket has space for so few
}

/// libFuzzer looks at the time of an input by a signal, which may interrupt connect(). The connection is then made all the same. On failure
/// errno says why.
bool connects(int socket, const sockaddr_in& to) {
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return true;
  if (errno != EINTR) return false;
  pollfd made{socket, POLLOUT, 0};
  while (::poll(&made, 1, -1) < 0 && errno == EINTR) {
  }
  socklen_t size = sizeof errno;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &errno, &size) == 0 && errno == 0;
}

}  // namespace

void read_input(std::string_view bytes) {
  const bool is_guarded = take_choice(bytes, 2) == 1;
  auto& node = victim(is_guarded);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(node.port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const support::owned_descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{patience.count(), 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const linger at_once{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  if (!connects(socket.get(), to)) {
    std::perror("expected that the node takes a connection, but connect() failed");
    std::abort();
  }
  const auto whole = test::hostile_client::handshake() + std::string(bytes);
  if (is_guarded)
    send_proven(socket.get(), whole);
  else
    ::send(socket.get(), whole.data(), whole.size(), MSG_NOSIGNAL);
  ::shutdown(socket.get(), SHUT_WR);
  std::array<char, 4096> answer{};
  for (;;) {
    const auto came = ::recv(socket.get(), answer.data(), answer.size(), 0);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      std::fprintf(stderr,
                   "expected that the node closes a connection whose other end has closed it, but it stayed open for %lld s\n",
                   static_cast<long long>(patience.count()));
      std::abort();
    }
    if (came <= 0) break;
  }
  static std::size_t count = 0;
  if (++count % 256 == 0 && node.status().self.name != "victim") std::abort();  // throws if the node does not answer
}

}  // namespace troupe::fuzz
