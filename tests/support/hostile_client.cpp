// SPDX-License-Identifier: BSD-3-Clause
#include "support/hostile_client.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <caf/actor_control_block.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/config_value.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/message.hpp>

#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/registration.hpp>

#include "messages/samples.hpp"

namespace troupe::test {

namespace {

using caf::io::basp::message_type;
using network::message_head;
using support::owned_descriptor;
using testing::generator;

constexpr std::chrono::seconds patience{20};
constexpr std::size_t most_stalled = 20;
constexpr std::size_t node_bytes = 32;

/// One of `of` numbers.
std::size_t pick(generator& random, std::size_t of) { return static_cast<std::size_t>(random() % of); }

std::string random_bytes(generator& random, std::size_t most) {
  std::string result(pick(random, most) + 1, '\0');
  for (auto& each : result) each = static_cast<char>(random());
  return result;
}

/// A system that knows troupe's messages.
caf::actor_system& system_that_writes() {
  struct with_messages : caf::actor_system_config {
    with_messages() {
      troupe::add_message_types(*this);  // not the template of the same name
      set("scheduler.max-threads", std::size_t{1});
    }
  };
  // Neither ends before the process does: what CAF needs for that may have ended by then.
  static auto* const config = new with_messages;
  static auto* const system = new caf::actor_system(*config);
  return *system;
}

/// What CAF writes of a message to an actor, after the header.
std::string payload_of(caf::message what) {
  std::vector<char> bytes;
  caf::binary_serializer to(system_that_writes(), bytes);
  std::vector<caf::strong_actor_ptr> further;
  if (const auto failed = to(further, what)) throw std::runtime_error("can't write a message: " + caf::to_string(failed));
  return {bytes.begin(), bytes.end()};
}

/// A request that makes some sense to a node.
request some_request(generator& random, node_id self) {
  auto result = testing::make<request>(random);
  const auto sometimes = [&random](auto& to, auto from) {
    if (random() % 2 == 0) to = std::move(from);
  };
  std::visit(
    [&](auto& x) {
      if constexpr (requires { x.owner; }) sometimes(x.owner, self);
      if constexpr (requires { x.name; }) sometimes(x.name, random() % 2 == 0 ? "forward" : "echo");
      if constexpr (requires { x.type; }) sometimes(x.type, random() % 2 == 0 ? "linear" : "sgd");
      if constexpr (requires { x.folder; }) sometimes(x.folder, "../../etc");
      if constexpr (requires { x.save; }) sometimes(x.save, "0123456789abcdef");
    },
    result);
  return result;
}

/// Some messages say the truth of their sender, so that more of them is read.
template <class T>
void say_who(generator& random, T& x, node_id self) {
  if (random() % 4 == 0) return;
  if constexpr (std::same_as<T, hello>) {
    x.name = "mallory";
    x.id = self;
    x.protocol = random() % 2 == 0 ? protocol_version : x.protocol;
  } else if constexpr (std::same_as<T, propagate_gradients>) {
    x.from = "mallory";
  } else if constexpr (std::same_as<T, call_request>) {
    x.payload.message.node = self;
    x.what = some_request(random, self);
    if (auto* tensors = std::get_if<requests::write>(&x.what)) tensors->names.resize(x.payload.tensors.size());
    x.target.number = random() % 8;
    x.payload.context.number %= 8;
    if (random() % 2 == 0) x.payload.context.node = self;
  } else if constexpr (requires {
                         { x.from } -> std::convertible_to<node_id>;
                       }) {
    x.from = self;
  }
}

/// Whether the type is a message, and not a part of others.
template <class T>
constexpr bool travels_alone =
  !std::same_as<T, autograd_message> && !std::same_as<T, member> && !std::same_as<T, std::vector<member>>;

template <class T>
caf::message random_contents(generator& random, node_id self) {
  if constexpr (!travels_alone<T>) return random_contents<gossip>(random, self);
  auto x = testing::make<T>(random);
  say_who(random, x, self);
  if constexpr (std::same_as<T, hello>) return caf::make_message(std::move(x), caf::strong_actor_ptr{});
  return caf::make_message(std::move(x));
}

template <std::size_t... I>
caf::message random_contents(generator& random, node_id self, std::index_sequence<I...>) {
  using maker = caf::message (*)(generator&, node_id);
  static constexpr std::array<maker, sizeof...(I)> makers = {
    &random_contents<std::tuple_element_t<I, testing::message_types>>...};
  return makers[pick(random, makers.size())](random, self);
}

caf::message odd_contents(generator& random) {
  switch (pick(random, 9)) {
    case 6:
      return caf::make_message(caf::link_atom::value, caf::strong_actor_ptr{});
    case 7:
      return caf::make_message(caf::config_value(caf::config_value::list{caf::config_value(1), caf::config_value("x")}));
    case 8:
      return caf::make_message(make_error(errc::misuse, "go"), random_bytes(random, 100));
    case 0:
      return caf::make_message(support::status_atom::value);
    case 1:
      return caf::make_message(support::find_atom::value, random_bytes(random, 100));
    case 2:
      return caf::make_message(support::status_atom::value, std::uint64_t{random()}, std::int64_t(random()));
    case 3:
      return caf::make_message(support::tick_atom::value);
    case 4:
      return caf::make_message(caf::exit_msg{caf::actor_addr{}, make_error(errc::misuse, "go")});
    default:
      return caf::make_message(random_bytes(random, 1000), std::int32_t(random()));
  }
}

std::string framed(message_head head, std::string payload) {
  head.payload = static_cast<std::uint32_t>(payload.size());
  std::string result(message_head::bytes, '\0');
  head.write(result.data());
  return result + payload;
}

}  // namespace

struct hostile_client::proven {
  owned_descriptor socket;
  std::unique_ptr<gate::tls_session> session;
  std::uint64_t gateway = 1;
  std::string unsent;
  std::uint64_t sent = 0;

  void wait(short what) const {
    pollfd watched{socket.get(), what, 0};
    ::poll(&watched, 1, static_cast<int>(std::chrono::milliseconds(patience).count()));
  }

  /// Empty: the other end has closed, or sends nothing more.
  std::string read(std::size_t bytes) const {
    const auto until = std::chrono::steady_clock::now() + patience;
    std::string result;
    while (result.size() < bytes) {
      if (std::chrono::steady_clock::now() > until) return {};
      char byte = 0;
      const auto got = session->read({&byte, 1}, {});
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) return {};
      got == 1 ? result.push_back(byte) : wait(POLLIN);
    }
    return result;
  }

  /// False: the other end has closed.
  bool drain() {
    std::array<char, 16384> bytes{};
    for (;;) {
      const auto got = session->read({bytes.data(), bytes.size()}, {});
      if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      if (got == 0) return false;
    }
  }

  /// False: the other end has closed, or takes nothing more.
  bool send(std::string_view bytes) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!bytes.empty()) {
      if (!drain()) return false;
      const auto sent_now = session->write(bytes.data(), bytes.size(), false);
      if (sent_now < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
      if (sent_now > 0) bytes.remove_prefix(static_cast<std::size_t>(sent_now));
      if (!session->flush() && errno != EAGAIN && errno != EWOULDBLOCK) return false;
      if (!bytes.empty()) wait(POLLIN | POLLOUT);
      if (std::chrono::steady_clock::now() > until) return false;
    }
    return true;
  }
};

hostile_client::hostile_client(std::string address, std::uint16_t port, const std::string& kit, std::uint64_t seed)
    : address_(std::move(address)),
      port_(port),
      own_(std::make_shared<gate::credentials>(kit)),
      self_{seed * 2 + 1},
      random_(seed) {
  int both[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  const owned_descriptor calling(both[0]);
  const owned_descriptor called(both[1]);
  gate::tls_session(own_, calling.get(), gate::end::calling).shake_hands();
  hello_.resize(4096);
  hello_.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::recv(called.get(), hello_.data(), hello_.size(), 0))));
}

hostile_client::~hostile_client() = default;

owned_descriptor hostile_client::connect() {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port_);
  ::inet_pton(AF_INET, address_.c_str(), &to.sin_addr);
  owned_descriptor result(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{std::chrono::seconds(patience).count(), 0};
  ::setsockopt(result.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  // A connection that this end has closed keeps no port busy: a million of them would take all.
  const linger at_once{1, 0};
  ::setsockopt(result.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  if (!result || ::connect(result.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    throw std::runtime_error("nobody takes a connection at " + address_ + ":" + std::to_string(port_) + ": " +
                             std::generic_category().message(errno));
  ++connections_;
  return result;
}

void hostile_client::damage(std::string& bytes) {
  if (bytes.empty()) return;
  for (auto changes = pick(random_, 4); changes > 0 && !bytes.empty(); --changes) switch (pick(random_, 6)) {
      case 0:
        bytes[pick(random_, bytes.size())] ^= static_cast<char>(1U << pick(random_, 8));
        break;
      case 1:
        bytes[pick(random_, bytes.size())] = static_cast<char>(random_());
        break;
      case 2:
        bytes.resize(pick(random_, bytes.size()));
        break;
      case 3:
        bytes.insert(pick(random_, bytes.size()), random_bytes(random_, 64));
        break;
      case 4:
        bytes += random_bytes(random_, 64);
        break;
      default:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(pick(random_, bytes.size())), 1, '\xff');
    }
}

void hostile_client::before_the_proof() {
  const auto socket = connect();
  std::string bytes;
  switch (pick(random_, 4)) {
    case 0:
      bytes = random_bytes(random_, 2048);
      break;
    case 1:  // the header of BASP
      bytes = random_message(random_, 1, self_);
      break;
    case 2:  // a ClientHello, damaged
      bytes = hello_;
      damage(bytes);
      break;
    default:  // a ClientHello, then something else than what ends the handshake
      bytes = hello_ + random_bytes(random_, 256);
  }
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void hostile_client::stall() {
  auto socket = connect();
  ::send(socket.get(), hello_.data(), pick(random_, hello_.size()), MSG_NOSIGNAL);
  stalled_.push_back(std::move(socket));
  if (stalled_.size() > most_stalled) stalled_.pop_front();
}

std::unique_ptr<hostile_client::proven> hostile_client::prove() {
  auto result = std::make_unique<proven>();
  result->socket = connect();
  ::fcntl(result->socket.get(), F_SETFL, ::fcntl(result->socket.get(), F_GETFL) | O_NONBLOCK);
  result->session = std::make_unique<gate::tls_session>(own_, result->socket.get(), gate::end::calling, "victim");
  if (gate::prove_within(*result->session, result->socket.get(), patience)) return nullptr;
  // The node speaks first: its handshake has its id, names of programs, and the number of its gateway.
  const auto head = result->read(message_head::bytes);
  const auto body = head.empty() ? std::string() : result->read(message_head::read(head.data()).payload);
  std::size_t at = node_bytes + 1;
  for (int names = body.size() <= at ? 0 : body[node_bytes]; names > 0 && at < body.size(); --names)
    at += 1 + static_cast<unsigned char>(body[at]);
  if (body.size() < at + sizeof result->gateway) return nullptr;
  result->gateway = 0;
  for (std::size_t i = 0; i < sizeof result->gateway; ++i)
    result->gateway = result->gateway << 8 | static_cast<unsigned char>(body[at + i]);
  return result;
}

std::string hostile_client::random_message(std::mt19937_64& random, std::uint64_t gateway, node_id self) {
  message_head head;
  head.operation = static_cast<std::uint8_t>(message_type::direct_message);
  head.target = random() % 8 == 0 ? random() % 40 : gateway;
  head.source = random() % 40;
  head.message = random() % 2 == 0 ? 0 : random();
  auto contents = random() % 8 == 0
                    ? odd_contents(random)
                    : random_contents(random, self, std::make_index_sequence<std::tuple_size_v<testing::message_types>>());
  auto payload = payload_of(std::move(contents));
  if (random() % 16 == 0) {
    head.operation = static_cast<std::uint8_t>(message_type::routed_message);
    payload = random_bytes(random, 1).append(2 * node_bytes - 1, 'n') + payload;
  }
  return framed(head, std::move(payload));
}

/// The handshake of a caller, with the id of a node of CAF that nobody else has: its kind, a process's number and a host's.
std::string hostile_client::handshake() {
  std::string id;
  const auto kind = caf::atom("default");
  for (int shift = 56; shift >= 0; shift -= 8) id += static_cast<char>(static_cast<std::uint64_t>(kind) >> shift);
  id += std::string("\0\0\0\1", 4) + std::string(20, 'm');
  message_head head;
  head.operation = static_cast<std::uint8_t>(message_type::client_handshake);
  return framed(head, id);
}

std::string hostile_client::next_message(const proven& by) {
  if (by.sent == 0 && random_() % 32 != 0) return handshake();
  auto bytes = random_message(random_, by.gateway, self_);
  switch (pick(random_, 32)) {
    case 0:  // a header with other contents
      for (std::size_t i = 0; i < 4; ++i) bytes[pick(random_, message_head::bytes)] = static_cast<char>(random_());
      return bytes;
    case 1:
      return handshake();
    case 2:
      return random_bytes(random_, 300);
    default:
      break;
  }
  if (random_() % 2 == 0) return bytes;
  auto payload = bytes.substr(message_head::bytes);
  damage(payload);
  return framed(message_head::read(bytes.data()), std::move(payload));
}

bool hostile_client::is_closed_after(const std::string& bytes, bool proven_first) {
  const auto until = std::chrono::steady_clock::now() + patience;
  if (proven_first) {
    const auto by = prove();
    if (!by) throw std::runtime_error("the node at " + address_ + " does not take this client's proof");
    if (!by->send(bytes)) return true;
    while (by->drain()) {
      if (std::chrono::steady_clock::now() > until) return false;
      by->wait(POLLIN);
    }
    return true;
  }
  const auto socket = connect();
  const timeval limit{std::chrono::seconds(patience).count(), 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  std::array<char, 4096> answer{};
  for (;;) {
    const auto came = ::recv(socket.get(), answer.data(), answer.size(), 0);
    if (came <= 0) return came == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
}

void hostile_client::play(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto kind = random_() % 64;
    if (kind == 0) {
      before_the_proof();
    } else if (kind == 1 && random_() % 16 == 0) {
      stall();
    } else {
      if (!open_) open_ = prove();
      if (!open_) continue;
      const auto bytes = next_message(*open_);
      ++open_->sent;
      ++messages_;
      if (!open_->send(bytes) || random_() % 500 == 0) open_.reset();
    }
  }
  open_.reset();
  stalled_.clear();
}

}  // namespace troupe::test
