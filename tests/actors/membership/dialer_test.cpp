// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/dialer.hpp>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/caf_error.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/odd_server.hpp"
#include "actors/slow_names.hpp"
#include "support/no_more_threads.hpp"
#include "support/thread_count.hpp"

namespace {

const std::string two_addresses = "two addresses";          // 127.0.0.2, then 127.0.0.1
const std::string no_memory = "no memory";                  // to look it up
const std::string no_memory_at_once = "no memory at once";  // to see that it is no address

std::atomic<bool> greetings_are_unreadable{false};  // for want of memory

}  // namespace

// recv() and getaddrinfo() replace the functions of the C library in the whole test program.
extern "C" ssize_t recv(int socket, void* to, std::size_t bytes, int flags) {
  if ((flags & MSG_PEEK) == 0 || !greetings_are_unreadable) return ::recvfrom(socket, to, bytes, flags, nullptr, nullptr);
  errno = ENOMEM;
  return -1;
}

extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
  static const auto of_the_library = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool is_name = hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (host != nullptr && (host == no_memory_at_once || (is_name && host == no_memory))) throw std::bad_alloc();
  if (host != nullptr && is_name && troupe::test::slow_names::are_meant_by(host)) {
    troupe::test::slow_names::wait();
    host = "127.0.0.1";
  }
  if (host == nullptr || host != two_addresses) return of_the_library(host, port, hints, found);
  const int problem = of_the_library("127.0.0.2", port, hints, found);
  return problem != 0 ? problem : of_the_library("127.0.0.1", port, hints, &(*found)->ai_next);
}

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using troupe::test::odd_server;

struct caller {
  troupe::nodes::system_config config{troupe::settings{}};
  caf::actor_system system{config};
  troupe::membership::dialer_actor dialer;

  // As in a node: the system may end while a request of the middleman is on its way to CAF's broker.
  caller() {
    troupe::support::close_basp_mailbox_at_exit(system);
    dialer = troupe::membership::spawn_dialer(system);
  }
  ~caller() { caf::anon_send_exit(dialer, caf::exit_reason::user_shutdown); }

  auto dial(caf::scoped_actor& self, const std::string& host, std::uint16_t port, std::chrono::nanoseconds deadline) {
    return self->request(dialer, 10s, caf::connect_atom::value, host, port, std::int64_t{deadline.count()});
  }

  // The error of one call. No error if the call gave a gateway.
  caf::error call(std::uint16_t port, std::chrono::nanoseconds deadline = 5s, const std::string& host = "127.0.0.1") {
    caf::scoped_actor self{system};
    caf::error result;
    dial(self, host, port, deadline)
      .receive([](caf::node_id&, caf::strong_actor_ptr& gateway, std::set<std::string>&) { BOOST_TEST((gateway != nullptr)); },
               [&](caf::error& problem) { result = problem; });
    return result;
  }
};

/// A server on 127.0.0.2 that takes no further connection: the system leaves attempts unanswered, which are made again a second
/// later, and refuses them once the server is gone.
class full_server {
 public:
  explicit full_server(std::uint16_t port) {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(port);
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    auto* plain = reinterpret_cast<sockaddr*>(&address_);
    BOOST_REQUIRE(::bind(listening_.get(), plain, sizeof address_) == 0);
    BOOST_REQUIRE(::listen(listening_.get(), 0) == 0);
    BOOST_REQUIRE(::connect(first_.get(), plain, sizeof address_) == 0);
  }

  /// Waits until a process tries to connect.
  bool is_called() const {
    std::ostringstream attempt;
    attempt << std::uppercase << std::hex << " 0200007F:" << std::setw(4) << std::setfill('0') << ntohs(address_.sin_port)
            << " 02 ";
    const auto until = clock::now() + 10s;
    while (clock::now() < until) {
      std::ifstream connections("/proc/net/tcp");
      const std::string all{std::istreambuf_iterator<char>(connections), {}};
      if (all.find(attempt.str()) != std::string::npos) return true;
    }
    return false;
  }

 private:
  sockaddr_in address_{};
  troupe::support::owned_descriptor listening_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  troupe::support::owned_descriptor first_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

/// A host on the way to a node at a port of 127.0.0.1. It passes connections on. Of the first ones it passes only the beginning of what the
/// node says, and nothing afterwards.
class stalling_relay {
 public:
  explicit stalling_relay(std::uint16_t port, int stalls = 1) : to_(port), stalls_(stalls) {
    const auto address = on_loopback(0);
    BOOST_REQUIRE(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    BOOST_REQUIRE(::listen(listening_.get(), 16) == 0);
    thread_ = std::thread([this] { run(); });
  }
  ~stalling_relay() {
    ::shutdown(listening_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    BOOST_REQUIRE(::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    return ntohs(address.sin_port);
  }
  int accepted() const noexcept { return accepted_; }
  int stalled() const noexcept { return stalled_; }

 private:
  using owned = troupe::support::owned_descriptor;

  static sockaddr_in on_loopback(std::uint16_t port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(port);
    result.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return result;
  }

  void run() {
    std::vector<owned> open;  // a connection that is passed on, and where to, follow each other
    std::vector<owned> stuck;
    for (;;) {
      std::vector<pollfd> watched{{listening_.get(), POLLIN, 0}};
      for (const auto& each : open) watched.push_back({each.get(), POLLIN, 0});
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      for (std::size_t i = 0; i < open.size(); ++i)
        if (watched[i + 1].revents != 0) {
          const bool stalls = i % 2 == 1 && stalled_ < stalls_;
          pass_on(open[i], open[i ^ 1U], stalls ? beginning : most);
          if (!stalls) continue;
          stuck.push_back(std::move(open[i]));
          stuck.push_back(std::move(open[i ^ 1U]));
          ++stalled_;
        }
      std::erase_if(open, [](const owned& each) { return !each; });
      if (watched[0].revents == 0) continue;
      owned from(::accept(listening_.get(), nullptr, nullptr));
      if (!from) return;
      ++accepted_;
      owned onward(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const auto address = on_loopback(to_);
      if (::connect(onward.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) continue;
      open.push_back(std::move(from));
      open.push_back(std::move(onward));
    }
  }

  static constexpr std::size_t most = 4096;
  static constexpr std::size_t beginning = 2;

  static void pass_on(owned& from, owned& to, std::size_t limit) {
    if (!from || !to) return;
    std::array<char, most> bytes{};
    const auto came = ::recvfrom(from.get(), bytes.data(), limit, 0, nullptr, nullptr);
    if (came > 0 && ::send(to.get(), bytes.data(), static_cast<std::size_t>(came), MSG_NOSIGNAL) == came) return;
    from = {};
    to = {};
  }

  const std::uint16_t to_;
  const int stalls_;
  std::atomic<int> accepted_{0};
  std::atomic<int> stalled_{0};
  owned listening_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::thread thread_;
};

/// A node of CAF that listens at a free port of 127.0.0.1.
class listening_node {
 public:
  listening_node() {
    const auto port = node_.system.middleman().publish(gateway_, 0, "127.0.0.1");
    BOOST_TEST_REQUIRE(port.engaged());
    port_ = *port;
  }
  ~listening_node() {
    node_.system.middleman().unpublish(gateway_, port_);
    caf::anon_send_exit(gateway_, caf::exit_reason::user_shutdown);
  }

  std::uint16_t port() const noexcept { return port_; }

 private:
  caller node_;
  const caf::actor gateway_ = node_.system.spawn([](caf::event_based_actor* self) -> caf::behavior {
    self->set_default_handler(caf::drop);
    return {[](int) {}};
  });
  std::uint16_t port_ = 0;
};

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_node_is_reached_by_address_and_by_name) {
  caller here;
  const listening_node there;
  BOOST_TEST(!here.call(there.port()));
  BOOST_TEST(!here.call(there.port(), 5s, "localhost"));
}

// DI-2. One thread makes the connections of all of CAF's calls. A host that took no second connection would hold that thread up.
BOOST_AUTO_TEST_CASE(a_node_is_reached_by_one_connection) {
  caller here;
  const listening_node there;
  {
    stalling_relay between(there.port(), 0);
    BOOST_TEST(!here.call(between.port()));
    BOOST_TEST(between.accepted() == 1);
  }
}

// DI-1. The system ends, each time: a handshake that the middleman waits for would keep it one time in five.
BOOST_AUTO_TEST_CASE(a_mute_server_is_given_up_at_the_deadline_and_the_system_ends) {
  odd_server mute;
  for (int round = 0; round < 25; ++round) {
    caller here;
    BOOST_TEST((here.call(mute.port(), 20ms) == caf::sec::request_timeout));
  }
}

// DI-1, DI-4. A middleman whose connection nobody answered waited for ever, and each later call of the address waited with it.
BOOST_AUTO_TEST_CASE(an_address_that_stalled_once_is_reached_again) {
  caller here;
  const listening_node there;
  {
    stalling_relay between(there.port());
    BOOST_TEST((here.call(between.port(), 500ms) == caf::sec::request_timeout));
    BOOST_TEST(between.accepted() == 1);
    BOOST_TEST(between.stalled() == 1);
    // The connection that stalled may still be ending while the next call begins.
    BOOST_TEST(troupe::test::becomes_true([&] { return !here.call(between.port(), 500ms); }));
  }
}

// DI-3, DI-4
BOOST_AUTO_TEST_CASE(the_system_ends_while_its_connection_stalls) {
  const listening_node there;
  {
    stalling_relay between(there.port());
    const auto begun = clock::now();
    {
      caller here;
      caf::scoped_actor self{here.system};
      here.dial(self, "127.0.0.1", between.port(), 60s);
      BOOST_TEST(troupe::test::becomes_true([&] { return between.stalled() == 1; }));
    }
    BOOST_TEST((clock::now() - begun < 10s));
  }
}

// DI-1
BOOST_AUTO_TEST_CASE(a_dialer_that_gets_no_thread_says_so_and_dials_again_later_and_the_system_ends) {
  caller here;
  odd_server mute;
  {
    const troupe::test::no_more_threads none;
    const auto problem = here.call(mute.port());
    BOOST_TEST((problem == troupe::errc::function_failed));
    const std::string text = troupe::to_exception(problem).what();
    BOOST_TEST(text.starts_with("the system gives no thread to dial with; raise the limit"), text);
  }
  BOOST_TEST((here.call(mute.port(), 20ms) == caf::sec::request_timeout));
}

// DI-1: a thread that was to be had a moment ago may be refused.
BOOST_AUTO_TEST_CASE(a_dialer_answers_every_call_while_threads_come_and_go) {
  caller here;
  odd_server leaver("", true);
  std::atomic<bool> over{false};
  std::thread coming_and_going([&] {
    while (!over) const troupe::test::no_more_threads none;
  });
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    const auto problem = here.call(leaver.port());
    const bool no_thread = problem == troupe::errc::function_failed;
    BOOST_TEST((no_thread || problem == caf::sec::disconnect_during_handshake), troupe::to_exception(problem).what());
    refused += no_thread ? 1 : 0;
  }
  over = true;
  coming_and_going.join();
  BOOST_TEST_MESSAGE(refused << " of 500 calls got no thread");
}

// DI-1, DI-2
BOOST_AUTO_TEST_CASE(nobody_is_told_from_a_stranger) {
  caller here;
  odd_server greeter("SSH-2.0-troupe\r\n");
  odd_server leaver("", true);
  std::uint16_t closed = 0;
  {
    odd_server server;
    closed = server.port();
  }
  BOOST_TEST((here.call(greeter.port()) == caf::sec::unexpected_message));
  BOOST_TEST((here.call(leaver.port()) == caf::sec::disconnect_during_handshake));
  BOOST_TEST((here.call(closed) == caf::sec::cannot_connect_to_node));
}

// DI-1
BOOST_AUTO_TEST_CASE(a_host_name_without_an_address_is_named) {
  caller here;
  const auto problem = here.call(1, 5s, "no such host");
  BOOST_TEST((problem == troupe::errc::misuse));
  const std::string text = troupe::to_exception(problem).what();
  BOOST_TEST(text.starts_with("the host name 'no such host' has no address ("), text);
}

// DI-1
BOOST_AUTO_TEST_CASE(a_dialer_without_memory_says_so) {
  caller here;
  for (const auto& host : {no_memory, no_memory_at_once}) {
    const auto problem = here.call(1, 5s, host);
    BOOST_TEST((problem == troupe::errc::function_failed));
    const std::string text = troupe::to_exception(problem).what();
    BOOST_TEST(text.starts_with("dialling"), text);
  }
}

// DI-1
BOOST_AUTO_TEST_CASE(a_server_whose_greeting_can_not_be_read_is_nobody) {
  caller here;
  odd_server greeter("hello");
  greetings_are_unreadable = true;
  BOOST_TEST((here.call(greeter.port(), 2s) == caf::sec::disconnect_during_handshake));
  greetings_are_unreadable = false;
}

// DI-1
BOOST_AUTO_TEST_CASE(a_host_whose_first_address_refuses_is_reached_at_its_second) {
  caller here;
  odd_server greeter("hello");
  BOOST_TEST((here.call(greeter.port(), 5s, two_addresses) == caf::sec::unexpected_message));
}

// DI-2
BOOST_AUTO_TEST_CASE(a_node_is_reached_at_the_second_address_of_its_host) {
  caller here;
  const listening_node there;
  BOOST_TEST(!here.call(there.port(), 5s, two_addresses));
}

// DI-1
BOOST_AUTO_TEST_CASE(a_host_whose_first_address_refuses_late_and_whose_second_refuses_has_no_node) {
  caller here;
  std::uint16_t port = 0;
  {
    odd_server server;
    port = server.port();
  }
  std::optional<full_server> first(port);
  caf::scoped_actor self{here.system};
  auto pending = here.dial(self, two_addresses, port, 8s);
  BOOST_TEST(first->is_called());
  first.reset();
  std::optional<caf::error> problem;
  pending.receive([](caf::node_id&, caf::strong_actor_ptr&, std::set<std::string>&) {}, [&](caf::error& x) { problem = x; });
  BOOST_TEST_REQUIRE(problem.has_value());
  BOOST_TEST((*problem == caf::sec::cannot_connect_to_node));
}

// AR-1
BOOST_AUTO_TEST_CASE(a_node_is_reached_at_the_second_address_of_a_host_whose_first_one_says_nothing) {
  caller here;
  const listening_node there;
  const full_server first(there.port());
  BOOST_TEST(!here.call(there.port(), 900ms, two_addresses));  // the system tries the first address again after a second
}

BOOST_AUTO_TEST_CASE(a_dialer_leaves_no_connection_open) {
  odd_server leaver("", true);
  const auto dial = [&](int times) {
    caller here;
    for (int i = 0; i < times; ++i) BOOST_TEST((here.call(leaver.port()) == caf::sec::disconnect_during_handshake));
  };
  dial(1);  // what is opened once for the process
  const auto before = open_descriptors();
  dial(20);
  BOOST_TEST(open_descriptors() == before);
}

// DI-3
BOOST_AUTO_TEST_CASE(one_mute_server_does_not_hold_up_the_others) {
  caller here;
  odd_server mute;
  odd_server greeter("hello");
  caf::scoped_actor self{here.system};
  const auto begun = clock::now();
  auto slow = here.dial(self, "127.0.0.1", mute.port(), 1s);
  BOOST_TEST((here.call(greeter.port()) == caf::sec::unexpected_message));
  BOOST_TEST((clock::now() - begun < 1s));
  std::optional<caf::error> problem;
  slow.receive([](caf::node_id&, caf::strong_actor_ptr&, std::set<std::string>&) {}, [&](caf::error& x) { problem = x; });
  BOOST_TEST_REQUIRE(problem.has_value());
  BOOST_TEST((*problem == caf::sec::request_timeout));
}

// DI-3
BOOST_AUTO_TEST_CASE(the_system_ends_in_the_middle_of_a_call) {
  odd_server mute;
  const auto begun = clock::now();
  {
    caller here;
    caf::scoped_actor self{here.system};
    here.dial(self, "127.0.0.1", mute.port(), 60s);
  }
  BOOST_TEST((clock::now() - begun < 5s));
}

// DI-3: many nodes of a process dial at the same time.
BOOST_AUTO_TEST_CASE(three_hundred_calls_of_two_dialers_take_one_thread) {
  odd_server mute;
  const auto open = open_descriptors();
  caller one;
  caller two;
  caf::scoped_actor self{one.system};
  const auto before = troupe::test::threads_of();
  for (int i = 0; i < 150; ++i) {
    one.dial(self, "127.0.0.1", mute.port(), 60s);
    two.dial(self, "127.0.0.1", mute.port(), 60s);
  }
  BOOST_TEST(troupe::test::becomes_true([&] { return open_descriptors() >= open + 300; }));
  BOOST_TEST(troupe::test::threads_of() <= before + 1);
}

// DI-3
BOOST_AUTO_TEST_CASE(the_system_ends_while_a_host_name_is_looked_up) {
  const troupe::test::slow_names slow;
  caller here;
  caf::scoped_actor self{here.system};
  here.dial(self, "slow", 1, 60s);
  BOOST_TEST(troupe::test::becomes_true([] { return troupe::test::slow_names::blocked() == 1; }));
}
