// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/dialer.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/io/middleman.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/support/host_lookup.hpp>
#include <troupe/actors/support/machine_address.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::membership {

namespace {

using steady = std::chrono::steady_clock;

constexpr std::chrono::milliseconds longest_wait{20};

/// A connection that is opened only to see what program listens at an address. Blocks only in the look-up of a host name, and
/// in wait().
class probe {
 public:
  enum class verdict { undecided, node, stranger, nobody };

  void dial(const std::string& host, std::uint16_t port) {
    found_ = support::look_up(host, port);
    next_ = found_.addresses.get();
    try_next();
  }

  /// Why no program was reached.
  caf::error problem() const {
    // A join tries again after a temporary failure of the look-up.
    if (found_.failed()) return make_error(found_.temporary ? errc::unknown_peer : errc::misuse, found_.problem);
    if (last_problem_ == ECONNRESET) return caf::sec::disconnect_during_handshake;
    if (is_refused_) return caf::sec::cannot_connect_to_node;
    return make_error(errc::unknown_peer, "no way to the host: " + std::generic_category().message(last_problem_));
  }

  /// The address that accepted the connection, as numbers.
  std::string reached() const {
    sockaddr_storage other{};
    socklen_t size = sizeof other;
    if (getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&other), &size) != 0) return {};
    return support::numeric_address(other);
  }

  verdict wait(std::chrono::milliseconds patience) {
    if (!socket_) return verdict::nobody;
    pollfd what{socket_.get(), static_cast<short>(connected_ ? POLLIN : POLLOUT), 0};
    if (poll(&what, 1, static_cast<int>(patience.count())) <= 0) return verdict::undecided;
    return connected_ ? hear() : connect_done();
  }

 private:
  void try_next() {
    socket_ = {};
    for (; next_ != nullptr && !socket_; next_ = next_->ai_next) {
      socket_ = support::owned_descriptor(
        socket(next_->ai_family, next_->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, next_->ai_protocol));
      if (socket_ && connect(socket_.get(), next_->ai_addr, next_->ai_addrlen) != 0 && errno != EINPROGRESS) failed(errno);
    }
  }

  void failed(int problem) {
    socket_ = {};
    is_refused_ = is_refused_ && problem == ECONNREFUSED;
    last_problem_ = problem;
  }

  verdict connect_done() {
    int problem = 0;
    socklen_t size = sizeof problem;
    connected_ = getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &problem, &size) == 0 && problem == 0;
    if (!connected_) failed(problem);
    if (!connected_) try_next();
    return !socket_ ? verdict::nobody : verdict::undecided;
  }

  // A node sends first: CAF's handshake begins with the kind of message (0) and two bytes of padding.
  verdict hear() {
    std::array<char, 3> first{};
    const auto size = recv(socket_.get(), first.data(), first.size(), MSG_PEEK);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return verdict::undecided;
    if (size <= 0) failed(ECONNRESET);
    if (size <= 0) return verdict::nobody;
    return std::all_of(first.begin(), first.begin() + size, [](char c) { return c == 0; }) ? verdict::node : verdict::stranger;
  }

  support::host_lookup found_;
  addrinfo* next_ = nullptr;
  support::owned_descriptor socket_;
  bool connected_ = false;
  bool is_refused_ = true;  // whether every address answered that no program listens
  int last_problem_ = 0;    // ECONNRESET: the program that listens said nothing
};

/// An address that is dialled. Each has a thread of its own.
struct dialled {
  caf::typed_response_promise<caf::node_id, caf::strong_actor_ptr, std::set<std::string>> promise;  // of the dialer
  std::string host;
  std::uint16_t port;
  steady::time_point deadline;
  probe line;
  bool begun = false;
  caf::error problem;
};
using dialled_ptr = std::shared_ptr<dialled>;

}  // namespace

}  // namespace troupe::membership

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::membership::dialled_ptr)

namespace troupe::membership {

namespace {

using dialer_host = dialer_actor::extend<caf::reacts_to<dialled_ptr>>;

/// Goes on with an attempt to reach a node, for at most `longest_wait`. Returns true if the attempt is over, because a node
/// answered or because of a problem.
bool look(dialled& to) {
  if (!std::exchange(to.begun, true)) to.line.dial(to.host, to.port);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(to.deadline - steady::now());
  if (left.count() <= 0) {
    to.problem = caf::sec::request_timeout;
    return true;
  }
  switch (to.line.wait(std::min(left, longest_wait))) {
    case probe::verdict::undecided:
      return false;
    case probe::verdict::node:
      // The middleman takes only the first address of a host name.
      if (auto address = to.line.reached(); !address.empty()) to.host = std::move(address);
      break;
    case probe::verdict::stranger:
      to.problem = caf::sec::unexpected_message;
      break;
    case probe::verdict::nobody:
      to.problem = to.line.problem();
      break;
  }
  return true;
}

/// A step of an attempt, on the thread of the attempt. Between two steps the thread may be told to exit.
void step(dialled_ptr& to, const caf::actor& self, const dialer_host& dialer) {
  bool decided = true;
  try {
    decided = look(*to);
  } catch (const std::exception& reason) {  // no memory
    to->problem = make_error(reason, "dialling");
  }
  if (!decided) return caf::anon_send(self, std::move(to));
  caf::anon_send(dialer, std::move(to));
  caf::anon_send_exit(self, caf::exit_reason::normal);
}

dialer_host::behavior_type make_dialer(dialer_host::pointer self) {
  return {
    [=](caf::connect_atom, std::string& host, std::uint16_t port,
        std::int64_t left_ns) -> caf::result<caf::node_id, caf::strong_actor_ptr, std::set<std::string>> {
      auto to = std::make_shared<dialled>();
      to->host = std::move(host);
      to->port = port;
      to->deadline = steady::now() + std::chrono::nanoseconds(left_ns);
      caf::actor caller;
      try {
        auto step_on = [dialer = dialer_host{self}](dialled_ptr& at, const caf::actor& me) { step(at, me, dialer); };
        caller = support::spawn_with_thread<dialled_ptr>(self->system(), "troupe.dial", std::move(step_on));
      } catch (const std::system_error&) {
        return make_error(errc::function_failed,
                          "the system gives no thread to dial with; raise the limit on the process's threads or memory");
      }
      self->link_to(caller);
      to->promise = self->make_response_promise<caf::node_id, caf::strong_actor_ptr, std::set<std::string>>();
      auto promise = to->promise;
      caf::anon_send(caller, std::move(to));
      return promise;
    },
    [=](dialled_ptr& to) {
      if (to->problem)
        to->promise.deliver(std::move(to->problem));
      else
        to->promise.delegate(self->system().middleman().actor_handle(), caf::connect_atom::value, to->host, to->port);
    },
  };
}

}  // namespace

dialer_actor spawn_dialer(caf::actor_system& system) { return system.spawn(make_dialer); }

}  // namespace troupe::membership
