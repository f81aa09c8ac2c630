// SPDX-License-Identifier: BSD-3-Clause
// Whole nodes with certificates, and hostile bytes at the ports of nodes.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/atom.hpp>
#include <caf/behavior.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/message.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>

#include <troupe/actors/network/accepting.hpp>
#include <troupe/actors/network/message_head.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/message_size.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/troupe.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"
#include "support/contains.hpp"
#include "support/no_more_threads.hpp"
#include "support/resident_memory.hpp"

BOOST_AUTO_TEST_SUITE(proven_nodes)

namespace {

using namespace std::chrono_literals;
using caf::io::basp::message_type;
using troupe::network::message_head;
using troupe::support::owned_descriptor;
using troupe::test::contains;
using troupe::test::own_cluster;

struct two_nodes {
  own_cluster mine;

  troupe::settings settings_of(const std::string& name) const { return mine.settings_of(name); }
};

void add_echo(troupe::node& to) {
  to.functions().add("echo", [](troupe::call_arguments& arguments) { return troupe::call_reply{arguments.tensors}; });
}

void connect_to(const owned_descriptor& socket, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(port);
  BOOST_REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  const timeval patience{20, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

owned_descriptor connected_to(std::uint16_t port) {
  owned_descriptor result(::socket(AF_INET, SOCK_STREAM, 0));
  connect_to(result, port);
  return result;
}

void send_all(const owned_descriptor& to, const std::string& bytes) {
  BOOST_TEST(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

/// Reads until the other end closes. False if it does not in time.
bool is_closed(const owned_descriptor& socket) {
  std::array<char, 4096> bytes{};
  for (;;) {
    const auto came = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (came == 0 || (came < 0 && errno == ECONNRESET)) return true;
    if (came < 0) BOOST_TEST_MESSAGE("recv: " << std::strerror(errno));
    if (came < 0) return false;
  }
}

std::string message_of(message_type kind, std::uint32_t announced, const std::string& payload, std::uint64_t target = 0,
                       std::uint8_t flags = 0, std::uint64_t data = 0) {
  message_head head;
  head.operation = static_cast<std::uint8_t>(kind);
  head.payload = announced;
  head.target = target;
  head.flags = flags;
  std::string result(message_head::bytes, '\0');
  head.write(result.data());
  for (int i = 0; i < 8; ++i) result[8 + static_cast<std::size_t>(i)] = static_cast<char>(data >> (56 - 8 * i));
  return result + payload;
}

/// A node without certificates, to whom programs of its own user may connect, and its log.
struct open_node {
  troupe::test::temporary_folder folder;
  std::unique_ptr<troupe::node> node;

  open_node() {
    auto with = troupe::test::loopback_settings("here");
    with.network = troupe::network_kind::troupe;
    with.insecure = false;
    with.log_file = folder / "log";
    node = std::make_unique<troupe::node>(with);
  }

  std::string log() { return troupe::test::read_text(folder / "log"); }
};

/// The handshake of a caller with a node's id of CAF that nobody has: its kind, a process's number and a host's.
std::string callers_handshake() {
  static std::uint32_t process = 0;
  ++process;
  std::string id;
  const auto kind = static_cast<std::uint64_t>(caf::atom("default"));
  for (int i = 7; i >= 0; --i) id += static_cast<char>(kind >> (8 * i));
  for (int i = 3; i >= 0; --i) id += static_cast<char>(process >> (8 * i));
  id += std::string(20, 'h');
  return message_of(message_type::client_handshake, static_cast<std::uint32_t>(id.size()), id);
}

}  // namespace

// TS-9
BOOST_FIXTURE_TEST_CASE(calls_and_tensors_go_by_TLS_and_by_memory_after_the_proof, two_nodes) {
  for (const bool shared_memory : {false, true}) {
    auto with_a = settings_of("a");
    auto with_b = settings_of("b");
    with_a.shared_memory = with_b.shared_memory = shared_memory;
    with_a.direct_memory = with_b.direct_memory = shared_memory;
    troupe::node a(with_a);
    troupe::node b(with_b);
    add_echo(b);
    BOOST_TEST(a.join("127.0.0.1", b.port()) == "b");
    const auto to = a.peer("b");
    for (const std::int64_t elements : {1, 1000, 70'000, 3'000'000}) {
      const auto sent = at::rand({elements});
      BOOST_TEST(at::equal(to.call("echo", {sent}).get().tensors.at(0), sent));
    }
    // Small calls overtake large ones.
    std::vector<troupe::future<troupe::call_reply>> large;
    for (int i = 0; i < 4; ++i) large.push_back(to.call("echo", {at::rand({3'000'000})}));
    for (int i = 0; i < 50; ++i) to.status();
    for (const auto& each : large) BOOST_TEST(each.get().tensors.at(0).numel() == 3'000'000);
    BOOST_TEST(b.status().connections_refused == 0U);
  }
}

BOOST_FIXTURE_TEST_CASE(a_pass_crosses_proven_connections, two_nodes) {
  auto with_a = settings_of("a");
  with_a.shared_memory = with_a.direct_memory = false;
  troupe::node a(with_a);
  troupe::node b(settings_of("b"));
  b.functions().add("double",
                    [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0) * 2}}; });
  a.join("127.0.0.1", b.port());
  auto x = at::ones({5}).requires_grad_();
  troupe::context pass(a);
  const auto y = a.peer("b").call("double", {x}).get().tensors.at(0);
  pass.backward({y.sum()}).get();
  BOOST_TEST(at::equal(pass.gradient(x), at::full({5}, 2.0)));
}

BOOST_FIXTURE_TEST_CASE(a_node_has_the_name_in_its_certificate, two_nodes) {
  auto with = settings_of("a");
  with.name = "b";
  BOOST_CHECK_EXCEPTION(troupe::node{with}, troupe::error,
                        troupe::test::says("is that of node 'a', and this node is 'b'", "troupe certs node b"));
}

BOOST_FIXTURE_TEST_CASE(plain_bytes_never_reach_a_node_with_certificates, two_nodes) {  // SM-3
  troupe::node a(settings_of("a"));
  for (const auto& bytes : {callers_handshake(), std::string(32, '\0'), std::string("GET / HTTP/1.1\r\n\r\n")}) {
    const auto caller = connected_to(a.port());
    send_all(caller, bytes);
    BOOST_TEST(is_closed(caller));
  }
  BOOST_TEST(troupe::test::becomes_true([&] { return a.status().connections_refused == 3; }));
}

// What ended a process before there were rules: each of these is 32 bytes, or a few more.
BOOST_FIXTURE_TEST_CASE(bytes_that_no_node_sends_end_their_connection_alone, open_node) {  // TS-10
  const std::vector<std::string> attacks{
    message_of(message_type::server_handshake, 0, "", 0, 0, 3),
    message_of(message_type::client_handshake, 0, ""),
    message_of(message_type::direct_message, 0, "", 1),
    message_of(message_type::monitor_message, 0, "", 1),
    message_of(message_type::heartbeat, 5, "12345"),
    message_of(static_cast<message_type>(77), 0, ""),
    std::string(32, '\xff'),
    callers_handshake() + message_of(message_type::routed_message, 0, "", 1),
    callers_handshake() + message_of(message_type::direct_message, 0, "", 1),
    callers_handshake() + message_of(message_type::down_message, 0, ""),
    callers_handshake() +
      message_of(message_type::direct_message, 9, std::string(9, 'x'), 7, caf::io::basp::header::named_receiver_flag),
    callers_handshake() + callers_handshake(),
    message_of(message_type::client_handshake, 25, std::string(25, 'x')) + std::string(100, 'y'),
  };
  for (const auto& attack : attacks) {
    const auto caller = connected_to(node->port());
    send_all(caller, attack);
    BOOST_TEST(is_closed(caller), &attack - attacks.data());
  }
  BOOST_TEST(troupe::test::becomes_true([&] { return node->status().connections_refused == attacks.size(); }),
             node->status().connections_refused);
  troupe::node other(troupe::test::loopback_settings("other"));
  BOOST_TEST(other.join("127.0.0.1", node->port()) == "here");
  other.stop();
  node->stop();
  BOOST_TEST(contains(log(), " sent a message to a service of CAF"), log());
}

// CAF numbers its actors from 1 on, so a stranger can send to every actor of a node. This test ends each actor by its number: those of CAF,
// of a context, of a worker.
BOOST_FIXTURE_TEST_CASE(nobody_ends_an_actor_of_a_node_by_a_guessed_number, open_node) {  // OA-2, BR-6
  node->functions().add("twice",
                        [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensor(0) * 2}}; });
  troupe::node other(troupe::test::loopback_settings("other"));
  other.join("127.0.0.1", node->port());
  troupe::worker_team team(*node, 1);
  troupe::context pass(other);
  auto x = at::ones({2}).requires_grad_();
  auto y = other.peer("here").call("twice", {x}).get().tensor(0);
  const auto last = node->system().latest_actor_id();
  BOOST_TEST(last < 100U);
  std::vector<char> exit;
  caf::binary_serializer to(node->system(), exit);
  std::vector<caf::strong_actor_ptr> further;
  auto what = caf::make_message(caf::exit_msg{caf::actor_addr{}, caf::exit_reason::kill});
  BOOST_TEST_REQUIRE(!to(further, what));
  const std::string payload(exit.begin(), exit.end());
  std::vector<owned_descriptor> callers;
  for (caf::actor_id number = 1; number <= last; ++number) {
    callers.push_back(connected_to(node->port()));
    const auto size = static_cast<std::uint32_t>(payload.size());
    send_all(callers.back(), callers_handshake() + message_of(message_type::direct_message, size, payload, number));
  }
  BOOST_TEST(troupe::test::becomes_true([&] { return node->status().connections_refused >= 10; }));
  pass.backward({y.sum()}).get();
  BOOST_TEST(pass.gradient(x).sum().item<float>() == 4.0F);
  std::promise<void> done;
  team.post([&] { done.set_value(); });
  BOOST_TEST((done.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready));
  troupe::node third(troupe::test::loopback_settings("third"));
  BOOST_TEST(third.join("127.0.0.1", node->port()) == "here");
}

BOOST_FIXTURE_TEST_CASE(a_connection_without_a_descriptor_for_it_ends_at_once, open_node) {  // AW-1
  rlimit before{};
  BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  std::vector<owned_descriptor> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
  // No descriptor is left: the limit is the lowest free one.
  const owned_descriptor lowest(::open("/dev/null", O_RDONLY));
  const auto few = rlimit{static_cast<rlim_t>(lowest.get()) + 1, before.rlim_max};
  BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::vector<owned_descriptor> rest;
  for (;;) {
    owned_descriptor next(::open("/dev/null", O_RDONLY));
    if (!next) break;
    rest.push_back(std::move(next));
  }
  for (const auto& each : callers) {
    connect_to(each, node->port());
    BOOST_TEST(is_closed(each));
  }
  rest.clear();
  BOOST_TEST(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  troupe::node other(troupe::test::loopback_settings("other"));
  BOOST_TEST(other.join("127.0.0.1", node->port()) == "here");
  other.stop();
  node->stop();
  BOOST_TEST(contains(log(), "this process has no descriptor for it (Too many open files)"), log());
}

// CAF says of a link that it comes from the actor that is linked to.
BOOST_FIXTURE_TEST_CASE(actors_of_two_nodes_may_link, two_nodes) {  // BR-5
  troupe::node here(settings_of("here"));
  troupe::node other(settings_of("other"));
  add_echo(here);
  other.join("127.0.0.1", here.port());
  const auto target = here.system().spawn([]() -> caf::behavior { return {[](int) {}}; });
  here.publish("target", caf::actor_cast<caf::strong_actor_ptr>(target));
  {
    const auto remote = caf::actor_cast<caf::actor>(other.peer("here").actor("target"));
    std::promise<caf::error> ended;
    auto linked = other.system().spawn([remote, &ended](caf::event_based_actor* me) -> caf::behavior {
      me->link_to(remote);
      me->attach_functor([&ended](const caf::error& why) { ended.set_value(why); });
      return {[](int) {}};
    });
    BOOST_TEST(other.peer("here").call("echo", {at::ones({2})}).get().tensor(0).sum().item<float>() == 2.0F);
    caf::anon_send_exit(target, caf::exit_reason::kill);
    BOOST_TEST((ended.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready));
  }
  BOOST_TEST(here.status().connections_refused == 0U);
  BOOST_TEST(here.peer("other").status().self.name == "other");
}

// CAF sends what it has written until then. Before, the connection ended.
BOOST_FIXTURE_TEST_CASE(a_message_that_could_not_be_written_ends_no_connection, two_nodes) {  // MV-2
  troupe::node here(settings_of("here"));
  troupe::node other(settings_of("other"));
  other.join("127.0.0.1", here.port());
  std::promise<int> came;
  const auto target =
    here.system().spawn([&came]() -> caf::behavior { return {[&came](int number) { came.set_value(number); }}; });
  here.publish("target", caf::actor_cast<caf::strong_actor_ptr>(target));
  {
    const auto remote = caf::actor_cast<caf::actor>(other.peer("here").actor("target"));
    troupe::call_request large;
    large.what = troupe::requests::function{std::string(troupe::max_header_bytes + 1, 'x')};
    const std::vector<std::uint64_t> unregistered = {1};
    caf::anon_send(remote, std::string("a"), large);
    caf::anon_send(remote, std::string("a"), caf::make_message(unregistered));
    caf::anon_send(remote, caf::make_message(unregistered), std::string("b"));
    caf::anon_send(remote, 7);
    auto number = came.get_future();
    BOOST_REQUIRE((number.wait_for(std::chrono::seconds(20)) == std::future_status::ready));
    BOOST_TEST(number.get() == 7);
  }
  BOOST_TEST(here.status().connections_refused == 0U);
  BOOST_TEST(here.peer("other").status().self.name == "other");
  caf::anon_send_exit(target, caf::exit_reason::user_shutdown);
}

// It ended the process.
BOOST_FIXTURE_TEST_CASE(a_connection_without_a_thread_for_its_handshake_ends_at_once, two_nodes) {  // SM-4
  const troupe::test::temporary_folder folder;
  auto how = settings_of("here");
  how.log_file = folder / "log";
  auto here = std::make_unique<troupe::node>(std::move(how));
  {
    const troupe::test::no_more_threads none;
    const auto caller = connected_to(here->port());
    BOOST_TEST(is_closed(caller));
  }
  troupe::node other(settings_of("other"));
  BOOST_TEST(other.join("127.0.0.1", here->port()) == "here");
  other.stop();
  here.reset();
  const auto log = troupe::test::read_text(folder / "log");
  BOOST_TEST(contains(log, "refused a connection: a connection ended at once: Resource temporarily unavailable"), log);
}

BOOST_AUTO_TEST_CASE(no_program_inherits_an_accepted_connection) {  // AW-2
  const owned_descriptor listens(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  BOOST_TEST_REQUIRE(::bind(listens.get(), reinterpret_cast<const sockaddr*>(&at), size) == 0);
  BOOST_TEST_REQUIRE(::listen(listens.get(), 1) == 0);
  BOOST_TEST_REQUIRE(::getsockname(listens.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
  const auto caller = connected_to(ntohs(at.sin_port));
  troupe::network::accepting how([](int) {});
  int accepted = -1;
  BOOST_TEST(how.try_accept(accepted, listens.get()));
  const owned_descriptor called(accepted);
  BOOST_TEST((::fcntl(called.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

// A header that announces 4 GiB took them before.
BOOST_FIXTURE_TEST_CASE(what_a_header_announces_takes_no_memory_before_it_comes, open_node) {  // TS-11
  std::vector<owned_descriptor> callers;
  const auto before = troupe::test::resident_kib();
  for (int i = 0; i < 20; ++i) {
    callers.push_back(connected_to(node->port()));
    send_all(callers.back(), callers_handshake() + message_of(message_type::direct_message, 0xFFFFFFF0, "few bytes", 1));
  }
  for (int i = 0; i < 20; ++i) {
    callers.push_back(connected_to(node->port()));
    send_all(callers.back(), message_of(message_type::client_handshake, 0xFFFFFFF0, "few bytes"));
  }
  for (int i = 20; i < 40; ++i) BOOST_TEST(is_closed(callers[static_cast<std::size_t>(i)]));
  troupe::node other(troupe::test::loopback_settings("other"));
  BOOST_TEST(other.join("127.0.0.1", node->port()) == "here");
  BOOST_TEST(troupe::test::resident_kib() - before < 256 * 1024);  // ThreadSanitizer takes half of it
}

BOOST_AUTO_TEST_SUITE_END()
