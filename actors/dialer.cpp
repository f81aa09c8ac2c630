// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/dialer.hpp>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include <caf/actor_system.hpp>
#include <caf/io/middleman.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/atoms.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe {

namespace {

using steady = std::chrono::steady_clock;

constexpr std::chrono::milliseconds longest_wait{20};

/// A connection that is opened only to see who is there. Never blocks but for the look-up of a name.
class probe {
 public:
  enum class verdict { undecided, node, stranger, nobody };

  probe() = default;
  probe(const probe&) = delete;
  probe& operator=(const probe&) = delete;
  ~probe() { hang_up(); }

  void dial(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int problem = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (problem != 0) {
      found = nullptr;
      const std::string why = problem == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(problem);
      // What may yet come right is tried again by those who join.
      unresolved_ = make_error(problem == EAI_AGAIN ? errc::unknown_peer : errc::misuse,
                               "the host name '" + host + "' has no address (" + why + "); is it spelled right?");
    }
    addresses_.reset(found);
    next_ = found;
    try_next();
  }

  /// Why the host's name has no address; none: it has.
  const caf::error& unresolved() const noexcept { return unresolved_; }

  verdict wait(std::chrono::milliseconds patience) {
    if (socket_ < 0) return verdict::nobody;
    pollfd what{socket_, static_cast<short>(connected_ ? POLLIN : POLLOUT), 0};
    if (poll(&what, 1, static_cast<int>(patience.count())) <= 0) return verdict::undecided;
    return connected_ ? hear() : connect_done();
  }

 private:
  struct free_addresses {
    void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
  };

  void hang_up() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

  void try_next() {
    hang_up();
    for (; next_ != nullptr && socket_ < 0; next_ = next_->ai_next) {
      socket_ = socket(next_->ai_family, next_->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, next_->ai_protocol);
      if (socket_ >= 0 && connect(socket_, next_->ai_addr, next_->ai_addrlen) != 0 && errno != EINPROGRESS) hang_up();
    }
  }

  verdict connect_done() {
    int problem = 0;
    socklen_t size = sizeof problem;
    connected_ = getsockopt(socket_, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 && problem == 0;
    if (!connected_) try_next();
    return socket_ < 0 ? verdict::nobody : verdict::undecided;
  }

  // A node speaks first: its handshake begins with the kind of message (0) and two bytes of padding.
  verdict hear() {
    std::array<char, 3> first{};
    const auto size = recv(socket_, first.data(), first.size(), MSG_PEEK);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return verdict::undecided;
    if (size <= 0) return verdict::nobody;
    return std::all_of(first.begin(), first.begin() + size, [](char c) { return c == 0; }) ? verdict::node : verdict::stranger;
  }

  std::unique_ptr<addrinfo, free_addresses> addresses_;
  addrinfo* next_ = nullptr;
  caf::error unresolved_;
  int socket_ = -1;
  bool connected_ = false;
};

using answer = caf::typed_response_promise<caf::node_id, caf::strong_actor_ptr, std::set<std::string>>;
using caller_actor = dialer_actor::extend<caf::reacts_to<tick_atom>>;

struct caller_state {
  static inline const char* name = "dialer.call";
  probe line;
  answer promise;
  std::string host;
  std::uint16_t port = 0;
  steady::time_point deadline;
};

using caller_pointer = caller_actor::stateful_pointer<caller_state>;

void step(caller_pointer self) {
  auto& st = self->state;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(st.deadline - steady::now());
  if (left.count() <= 0) {
    st.promise.deliver(caf::error{caf::sec::request_timeout});
    self->quit();
    return;
  }
  switch (st.line.wait(std::min(left, longest_wait))) {
    case probe::verdict::undecided:
      caf::anon_send(caller_actor{self}, tick_atom::value);
      return;
    case probe::verdict::node:
      st.promise.delegate(self->system().middleman().actor_handle(), caf::connect_atom::value, st.host, st.port);
      break;
    case probe::verdict::stranger:
      st.promise.deliver(caf::error{caf::sec::unexpected_message});
      break;
    case probe::verdict::nobody:
      st.promise.deliver(st.line.unresolved() ? st.line.unresolved() : caf::error{caf::sec::cannot_connect_to_node});
      break;
  }
  self->quit();
}

caller_actor::behavior_type make_caller(caller_pointer self) {
  return {
    [=](caf::connect_atom, std::string& host, std::uint16_t port,
        std::int64_t left_ns) -> caf::result<caf::node_id, caf::strong_actor_ptr, std::set<std::string>> {
      auto& st = self->state;
      st.promise = self->make_response_promise<caf::node_id, caf::strong_actor_ptr, std::set<std::string>>();
      st.host = std::move(host);
      st.port = port;
      st.deadline = steady::now() + std::chrono::nanoseconds(left_ns);
      st.line.dial(st.host, st.port);
      auto promise = st.promise;
      step(self);
      return promise;
    },
    [=](tick_atom) { step(self); },
  };
}

// CAF counts a detached actor before it asks for the thread, and would wait for that actor for ever.
bool a_thread_is_to_be_had() {
  try {
    std::thread([] {}).join();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

dialer_actor::behavior_type make_dialer(dialer_actor::pointer self) {
  return {
    [=](caf::connect_atom, std::string& host, std::uint16_t port,
        std::int64_t left_ns) -> caf::result<caf::node_id, caf::strong_actor_ptr, std::set<std::string>> {
      if (!a_thread_is_to_be_had()) return caf::make_error(caf::sec::cannot_connect_to_node, "no thread to dial with");
      const dialer_actor caller = self->spawn<caf::detached + caf::linked>(make_caller);
      return self->delegate(caller, caf::connect_atom::value, std::move(host), port, left_ns);
    },
  };
}

}  // namespace

dialer_actor spawn_dialer(caf::actor_system& system) { return system.spawn(make_dialer); }

}  // namespace troupe
