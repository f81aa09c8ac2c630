// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/tcp_scribe.hpp>

#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>

#include <troupe/actors/network/memory_lane.hpp>
#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/network/system_config.hpp>
#include <troupe/actors/settings.hpp>

namespace {

using namespace std::chrono_literals;
using caf::io::receive_policy;

constexpr auto long_enough = 20s;

struct in_broker {
  std::function<void(caf::io::broker*)>* work;
};

std::atomic<int> unreadable{-1};  // a descriptor for which the system has no memory

}  // namespace

// In place of the C library's, for all of this program.
extern "C" ssize_t readv(int descriptor, const iovec* to, int count) {
  if (descriptor != unreadable) return ::syscall(SYS_readv, descriptor, to, count);
  errno = ENOMEM;
  return -1;
}

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(in_broker)

namespace {

std::string some_bytes(std::size_t count) {
  std::string result(count, '\0');
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<char>(i * 7 + i / 251);
  return result;
}

int called_on_loopback(std::uint16_t port) {
  const int result = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval no_longer{20, 0};
  ::setsockopt(result, SOL_SOCKET, SO_RCVTIMEO, &no_longer, sizeof no_longer);
  BOOST_REQUIRE(::connect(result, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  return result;
}

troupe::settings without_shared_memory() {
  troupe::settings result;
  result.shared_memory = false;
  return result;
}

/// Until it is true.
template <class F>
bool comes_true(F what) {
  const auto until = std::chrono::steady_clock::now() + long_enough;
  while (!what())
    if (std::chrono::steady_clock::now() > until) return false;
  return true;
}

/// Returns when it is done.
void run_in(const caf::actor& broker, const std::function<void(caf::io::broker*)>& work) {
  std::promise<void> done;
  std::function<void(caf::io::broker*)> all = [&](caf::io::broker* self) {
    work(self);
    done.set_value();
  };
  caf::anon_send(broker, in_broker{&all});
  const auto how = done.get_future().wait_for(long_enough);  // before Boost.Test, which the work may use, is used here
  BOOST_REQUIRE((how == std::future_status::ready));
}

/// Sends them at once.
void write_in(caf::io::broker* self, caf::io::connection_handle to, const std::string& bytes) {
  self->write(to, bytes.size(), bytes.data());
  self->flush(to);
}

/// A broker with one connection, and the other end of that.
class connection {
 public:
  std::function<void(caf::io::broker*, const std::string&)> on_data;  // runs in the broker
  std::function<void(caf::io::broker*)> on_passive;
  caf::io::connection_handle handle;
  int closed = 0;  // how often the broker was told
  int client = -1;

  explicit connection(receive_policy::config wanted, const troupe::settings& options = {},
                      const std::function<int(std::uint16_t)>& call = called_on_loopback)
      : wanted_(wanted), config_(options) {
    std::promise<std::uint16_t> port;
    run([&](caf::io::broker* self) { port.set_value(self->add_tcp_doorman(0, "127.0.0.1")->second); });
    client = call(port.get_future().get());
    BOOST_REQUIRE((connected_.get_future().wait_for(long_enough) == std::future_status::ready));
  }

  ~connection() {
    ::close(client);
    caf::anon_send_exit(broker_, caf::exit_reason::user_shutdown);
  }

  void run(const std::function<void(caf::io::broker*)>& work) { run_in(broker_, work); }

  void send(const std::string& bytes) const {
    BOOST_REQUIRE(::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }

  void write(const std::string& bytes) {
    run([&](caf::io::broker* self) { write_in(self, handle, bytes); });
  }

  /// Waits until the broker is told.
  bool is_closed() {
    int told = 0;
    return comes_true([&] {
      run([&](caf::io::broker*) { told = closed; });
      return told > 0;
    });
  }

  /// Until so many bytes came by TCP, or the end.
  std::string receive(std::size_t most) const {
    std::string result(most, '\0');
    std::size_t came = 0;
    while (came < most) {
      const auto bytes = ::recv(client, result.data() + came, most - came, 0);
      if (bytes <= 0) break;
      came += static_cast<std::size_t>(bytes);
    }
    result.resize(came);
    return result;
  }

 private:
  receive_policy::config wanted_;
  troupe::network::system_config config_;
  caf::actor_system system_{config_};
  std::promise<void> connected_;
  caf::actor broker_ = system_.middleman().spawn_broker([this](caf::io::broker* self) -> caf::behavior {
    return {
      [=](const in_broker& what) { (*what.work)(self); },
      [=, this](const caf::io::new_connection_msg& came) {
        handle = came.handle;
        self->configure_read(handle, wanted_);
        connected_.set_value();
      },
      [=, this](const caf::io::new_data_msg& came) { on_data(self, std::string(came.buf.begin(), came.buf.end())); },
      [=, this](const caf::io::connection_passivated_msg&) { on_passive(self); },
      [this](const caf::io::connection_closed_msg&) { ++closed; },
      [](const caf::io::acceptor_closed_msg&) {},
    };
  });
};

constexpr std::size_t large_part = std::size_t{16} << 20;
constexpr std::size_t many_parts = 3 * troupe::support::recent_peak::window;

/// What the C library has given to this process and not got back.
std::size_t memory_in_use() {
  const auto all = ::mallinfo2();
  return all.uordblks + all.hblkhd;
}

/// What the broker has got, which the test waits for.
class inbox {
 public:
  explicit inbox(std::size_t expected) : expected_(expected) {}

  bool has_more_than(std::size_t bytes) const { return got_.size() > bytes; }  // in the broker

  void add(const std::string& bytes) {
    got_ += bytes;
    if (got_.size() >= expected_ && !std::exchange(told_, true)) full_.set_value();
  }
  void forget() { std::string().swap(got_); }
  std::string all() {
    BOOST_REQUIRE((full_.get_future().wait_for(long_enough) == std::future_status::ready));
    return got_;
  }

 private:
  std::size_t expected_;
  std::string got_;
  bool told_ = false;
  std::promise<void> full_;
};

/// The end of a connection that does by hand what a scribe does in shared memory.
class end_by_hand {
 public:
  troupe::network::lane_with_bell met;

  /// The one that called. Nothing was said yet.
  explicit end_by_hand(int caller) : door_(troupe::network::lane_door::open(caller)) { BOOST_REQUIRE(door_.has_value()); }
  /// The one that was called, and has heard something.
  explicit end_by_hand(troupe::network::lane_with_bell knocked) : met(std::move(knocked)) {}

  void take_lane() {
    BOOST_REQUIRE(comes_true([&] {
      met = door_->answer();
      return met.lane != nullptr;
    }));
  }

  void write(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const auto put = met.lane->outgoing.write(bytes.data() + at, bytes.size() - at).value();
      at += put;
      if (put > 0 && met.lane->outgoing.has_to_wake_reader()) ring();
      if (put == 0 && met.lane->outgoing.may_sleep()) BOOST_REQUIRE(is_rung());
    }
  }

  std::string read(std::size_t bytes) {
    std::string result(bytes, '\0');
    for (std::size_t at = 0; at < bytes;) {
      const auto came = met.lane->incoming.read(result.data() + at, bytes - at).value();
      at += came;
      if (came > 0 && met.lane->incoming.has_to_wake_writer()) ring();
      if (came > 0 || !met.lane->incoming.may_sleep()) continue;
      BOOST_REQUIRE(is_rung());
      met.lane->incoming.wake();
    }
    return result;
  }

  void ring() const {
    const char any = 0;
    ::send(met.bell.get(), &any, 1, MSG_NOSIGNAL);
  }

  /// Within the time that a test has.
  bool is_rung() const {
    pollfd bell{met.bell.get(), POLLIN, 0};
    std::array<char, 64> rings;
    return ::poll(&bell, 1, 20'000) == 1 && ::recv(met.bell.get(), rings.data(), rings.size(), MSG_DONTWAIT) > 0;
  }

 private:
  std::optional<troupe::network::lane_door> door_;
};

/// A connection with a caller by hand that has said `first`, by TCP, and has a lane since the broker got that.
struct lane_to_broker {
  explicit lane_to_broker(receive_policy::config wanted, const std::string& first = "first") : to(wanted), end(to.client) {
    std::promise<void> heard;
    std::size_t left = first.size();
    to.on_data = [&](caf::io::broker*, const std::string& bytes) {
      left -= bytes.size();
      if (left == 0) heard.set_value();
    };
    to.send(first);
    BOOST_REQUIRE((heard.get_future().wait_for(long_enough) == std::future_status::ready));
    to.run([&](caf::io::broker*) { to.on_data = [](caf::io::broker*, const std::string&) {}; });
    end.take_lane();
  }
  void on_data(std::function<void(caf::io::broker*, const std::string&)> handler) {
    to.run([&](caf::io::broker*) { to.on_data = std::move(handler); });
  }
  bool is_closed() { return to.is_closed(); }

  connection to;
  end_by_hand end;
};

/// A broker that calls another one.
class a_caller {
 public:
  std::function<void(const std::string&)> on_data;  // runs in the broker

  explicit a_caller(const troupe::settings& options) : config_(options) {}
  ~a_caller() { caf::anon_send_exit(broker_, caf::exit_reason::user_shutdown); }

  void call(std::uint16_t port) {
    run([&](caf::io::broker* self) {
      handle_ = *self->add_tcp_scribe("127.0.0.1", port);
      self->configure_read(handle_, receive_policy::at_least(1));
    });
  }
  void write(const std::string& bytes) {
    run([&](caf::io::broker* self) { write_in(self, handle_, bytes); });
  }

 private:
  void run(const std::function<void(caf::io::broker*)>& work) { run_in(broker_, work); }

  troupe::network::system_config config_;
  caf::actor_system system_{config_};
  caf::io::connection_handle handle_;
  caf::actor broker_ = system_.middleman().spawn_broker([this](caf::io::broker* self) -> caf::behavior {
    return {
      [=](const in_broker& what) { (*what.work)(self); },
      [this](const caf::io::new_data_msg& came) { on_data(std::string(came.buf.begin(), came.buf.end())); },
      [](const caf::io::connection_closed_msg&) {},
    };
  });
};

int lanes_of_this_process() {
  std::ifstream maps("/proc/self/maps");
  int result = 0;
  for (std::string line; std::getline(maps, line);) result += line.find("memfd:troupe lane") != std::string::npos ? 1 : 0;
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tcp_scribe)

// Headers and what they announce, of sizes around those of the buffers; in one write, and cut anywhere.
BOOST_AUTO_TEST_CASE(the_broker_gets_parts_of_the_size_that_it_wants) {
  const std::vector<std::size_t> sizes{3, 1, 16'381, 72, 16'384, 5, 100'000, 16'385, 1, 40'000, 7};
  std::size_t total = 0;
  for (const auto each : sizes) total += each;
  const auto sent = some_bytes(total);
  for (const std::size_t cut : {total, std::size_t{1'000}, std::size_t{16'384}, std::size_t{17}}) {
    connection to(receive_policy::exactly(sizes[0]));
    inbox got(total);
    std::vector<std::size_t> came;
    to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
      came.push_back(bytes.size());
      if (came.size() < sizes.size()) self->configure_read(to.handle, receive_policy::exactly(sizes[came.size()]));
      got.add(bytes);
    };
    for (std::size_t at = 0; at < total; at += cut) to.send(sent.substr(at, cut));
    BOOST_TEST((got.all() == sent));
    BOOST_TEST(came == sizes, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(the_broker_gets_as_much_as_it_wants_at_most_or_at_least) {
  const auto sent = some_bytes(100'000);
  for (const auto& wanted : {receive_policy::at_most(300), receive_policy::at_least(300)}) {
    connection to(wanted);
    inbox got(wanted.first == caf::io::receive_policy_flag::at_most ? sent.size() : sent.size() - 299);
    bool fits = true;
    to.on_data = [&](caf::io::broker*, const std::string& bytes) {
      fits = fits && (wanted.first == caf::io::receive_policy_flag::at_most ? bytes.size() <= 300 : bytes.size() >= 300);
      got.add(bytes);
    };
    to.send(sent);
    const auto all = got.all();
    BOOST_TEST((all == sent.substr(0, all.size())));
    BOOST_TEST(fits);
  }
}

// TS-2: no event comes for what is here already.
BOOST_AUTO_TEST_CASE(what_was_read_ahead_waits_for_a_broker_that_was_halted) {
  constexpr int parts = 5;
  connection to(receive_policy::exactly(10));
  std::promise<void> passive[parts];
  std::string got;
  int pauses = 0;
  to.on_data = [&](caf::io::broker*, const std::string& bytes) { got += bytes; };
  to.on_passive = [&](caf::io::broker*) { passive[pauses++].set_value(); };
  to.run([&](caf::io::broker* self) { self->trigger(to.handle, 1); });
  const auto sent = some_bytes(10 * parts);
  to.send(sent);
  for (int i = 0; i < parts; ++i) {
    BOOST_REQUIRE((passive[i].get_future().wait_for(long_enough) == std::future_status::ready));
    to.run([&](caf::io::broker* self) {
      BOOST_TEST((got == sent.substr(0, 10 * static_cast<std::size_t>(i + 1))));
      self->trigger(to.handle, 1);
    });
  }
}

// TS-2: the broker wants no more while it handles what came.
BOOST_AUTO_TEST_CASE(a_broker_that_halts_gets_nothing_before_it_goes_on) {
  connection to(receive_policy::exactly(10));
  std::promise<void> first;
  inbox got(50);
  int parts = 0;
  to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
    got.add(bytes);
    if (++parts > 1) return;
    self->halt(to.handle);
    first.set_value();
  };
  const auto sent = some_bytes(50);
  to.send(sent);
  BOOST_REQUIRE((first.get_future().wait_for(long_enough) == std::future_status::ready));
  for (int i = 0; i < 10; ++i) to.run([&](caf::io::broker*) { BOOST_TEST(parts == 1); });
  to.run([&](caf::io::broker* self) { self->trigger(to.handle); });
  BOOST_TEST((got.all() == sent));
}

// TS-1: much more than the system takes at once, twice; the connection ends when all has left.
BOOST_AUTO_TEST_CASE(what_the_system_does_not_take_leaves_later_and_before_the_end) {
  connection to(receive_policy::exactly(1));
  const auto sent = some_bytes(std::size_t{24} << 20);
  const auto send_all = [&](caf::io::broker* self) {
    for (std::size_t at = 0; at < sent.size(); at += sent.size() / 8) {
      self->write(to.handle, sent.size() / 8, sent.data() + at);
      self->flush(to.handle);
    }
  };
  to.run(send_all);
  to.run([](caf::io::broker*) {});  // the system has taken what it can
  BOOST_TEST((to.receive(sent.size()) == sent));
  to.run(send_all);
  to.run([&](caf::io::broker* self) {
    self->write(to.handle, 3, "end");
    self->flush(to.handle);
    self->close(to.handle);
  });
  BOOST_TEST((to.receive(sent.size() + 100) == sent + "end"));
}

// TS-7
BOOST_AUTO_TEST_CASE(memory_of_a_large_part_is_freed_after_many_small_ones) {
  connection to(receive_policy::exactly(1));
  inbox got(1 + large_part + many_parts);
  to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
    self->configure_read(to.handle, receive_policy::exactly(bytes.size() == 1 && !got.has_more_than(0) ? large_part : 1));
    got.add(bytes);
  };
  const auto before = memory_in_use();
  to.send(some_bytes(1 + large_part + many_parts));
  BOOST_TEST((got.all() == some_bytes(1 + large_part + many_parts)));
  to.run([&](caf::io::broker*) { got.forget(); });
  BOOST_TEST(memory_in_use() < before + large_part / 4);
}

// TS-7
BOOST_AUTO_TEST_CASE(memory_of_what_left_is_freed_after_many_small_messages) {
  connection to(receive_policy::at_least(1));
  const auto before = memory_in_use();
  {
    auto large = std::async(std::launch::async, [&] { return to.receive(large_part); });
    to.write(some_bytes(large_part));
    BOOST_TEST((large.get() == some_bytes(large_part)));
  }
  for (std::size_t i = 0; i < many_parts; ++i) {
    to.write("x");
    BOOST_REQUIRE(to.receive(1) == "x");
  }
  BOOST_TEST(memory_in_use() < before + large_part / 4);
}

// TS-3: the broker is in the midst of writing when the other end is gone.
BOOST_AUTO_TEST_CASE(a_broker_is_told_once_of_a_connection_that_is_gone_and_not_while_it_writes) {
  connection to(receive_policy::exactly(1));
  const linger at_once{1, 0};
  ::setsockopt(to.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  const auto sent = some_bytes(std::size_t{8} << 20);
  to.run([&](caf::io::broker* self) {
    ::close(std::exchange(to.client, -1));
    for (int i = 0; i < 4; ++i) {
      self->write(to.handle, sent.size(), sent.data());
      self->flush(to.handle);
      BOOST_TEST(to.closed == 0);
    }
  });
  const auto until = std::chrono::steady_clock::now() + long_enough;
  int told = 0;
  while (told == 0 && std::chrono::steady_clock::now() < until) to.run([&](caf::io::broker*) { told = to.closed; });
  to.run([&](caf::io::broker* self) {
    BOOST_TEST(to.closed == 1);
    BOOST_TEST(self->num_connections() == 0u);
  });
}

// TS-3
BOOST_AUTO_TEST_CASE(a_connection_that_can_not_be_read_for_want_of_memory_ends) {
  connection to(receive_policy::exactly(1));
  to.on_data = [](caf::io::broker*, const std::string&) {};
  unreadable = static_cast<int>(to.handle.id());
  to.send("x");
  BOOST_TEST(to.is_closed());
  unreadable = -1;
}

// TS-3: a time stamp, which nobody asked the scribe to fetch, is an error of the socket that comes with neither bytes nor room.
BOOST_AUTO_TEST_CASE(a_halted_broker_that_writes_is_told_of_an_error_of_its_socket) {
  connection to(receive_policy::exactly(1), without_shared_memory());
  to.run([&](caf::io::broker* self) {
    const int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    BOOST_TEST(::setsockopt(static_cast<int>(to.handle.id()), SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps) == 0);
    self->halt(to.handle);
    write_in(self, to.handle, "stamped");
  });
  BOOST_TEST(to.receive(7) == "stamped");
  to.write(some_bytes(std::size_t{24} << 20));
  BOOST_TEST(to.is_closed());
}

// TS-5: memory has what follows before TCP brings what comes first.
BOOST_AUTO_TEST_CASE(what_was_sent_before_memory_was_used_is_consumed_before_what_is_in_memory) {
  lane_to_broker over(receive_policy::exactly(1));
  inbox got(40);
  over.on_data([&](caf::io::broker*, const std::string& bytes) { got.add(bytes); });
  const auto sent = some_bytes(40);
  over.end.met.lane->outgoing.begin(5 + 20);
  over.end.write(sent.substr(20));
  over.end.ring();
  for (int i = 0; i < 10; ++i) over.to.run([&](caf::io::broker*) { BOOST_TEST(!got.has_more_than(0)); });
  over.to.send(sent.substr(0, 10));
  for (int i = 0; i < 10; ++i) over.to.run([&](caf::io::broker*) { BOOST_TEST(!got.has_more_than(10)); });
  over.to.send(sent.substr(10, 10));
  BOOST_TEST((got.all() == sent));
}

// TS-1, TS-5
BOOST_AUTO_TEST_CASE(a_scribe_writes_into_memory_once_the_other_end_has_it) {
  connection to(receive_policy::exactly(1));
  end_by_hand end(to.client);
  std::promise<void> heard;
  to.on_data = [&](caf::io::broker*, const std::string&) { heard.set_value(); };
  to.send("x");
  BOOST_REQUIRE((heard.get_future().wait_for(long_enough) == std::future_status::ready));
  to.write("by tcp");
  BOOST_TEST(to.receive(6) == "by tcp");
  end.take_lane();
  BOOST_TEST(!end.met.lane->incoming.has_begun_after(6));
  to.write("in memory");
  BOOST_TEST(end.read(9) == "in memory");
  BOOST_TEST(end.met.lane->incoming.has_begun_after(6));
}

// TS-6: both sleep whenever they may, and the network thread for good where nothing else comes for longer than it stays awake.
BOOST_AUTO_TEST_CASE(two_ends_that_sleep_wake_each_other) {
  lane_to_broker over(receive_policy::exactly(5));
  const auto let_sleep = [&] { return over.end.met.lane->outgoing.has_to_wake_reader(); };
  over.on_data([&](caf::io::broker* self, const std::string& bytes) {
    self->write(over.to.handle, bytes.size(), bytes.data());
    self->flush(over.to.handle);
  });
  over.end.met.lane->outgoing.begin(5);
  for (int i = 0; i < 2'000; ++i) {
    const auto sent = std::to_string(10'000 + i);
    if (i % 100 == 0 && i > 0) BOOST_REQUIRE(comes_true(let_sleep));
    over.end.write(sent);
    if (i % 100 == 0) over.end.ring();  // let_sleep took the flag
    BOOST_REQUIRE(over.end.read(5) == sent);
  }
}

// WC-1
BOOST_AUTO_TEST_CASE(one_that_nobody_watches_any_more_is_woken_by_the_other_end) {
  lane_to_broker over(receive_policy::exactly(5));
  std::promise<void> first;
  inbox got(10);
  over.on_data([&, parts = 0](caf::io::broker*, const std::string& bytes) mutable {
    got.add(bytes);
    if (++parts == 1) first.set_value();
  });
  over.end.met.lane->outgoing.begin(5);
  over.end.write("first");
  BOOST_REQUIRE((first.get_future().wait_for(long_enough) == std::future_status::ready));
  bool unwatched = false;  // though the network thread never sleeps
  const auto drop = [&] {
    over.to.run([&](caf::io::broker*) { unwatched = over.end.met.lane->outgoing.has_to_wake_reader(); });
    return unwatched;
  };
  BOOST_REQUIRE(comes_true(drop));
  over.end.write("other");
  over.end.ring();
  BOOST_TEST(got.all() == "firstother");
}

// TS-1, TS-6: much more than there is room for, twice; the end comes after all of it.
BOOST_AUTO_TEST_CASE(what_there_is_no_room_for_in_memory_leaves_later_and_before_the_end) {
  lane_to_broker over(receive_policy::exactly(1));
  const auto sent = some_bytes(std::size_t{6} << 20);
  over.to.write(sent);
  over.to.run([](caf::io::broker*) {});  // the scribe has filled what there is
  BOOST_TEST((over.end.read(sent.size()) == sent));
  over.to.run([&](caf::io::broker* self) {
    self->write(over.to.handle, sent.size(), sent.data());
    self->flush(over.to.handle);
    self->write(over.to.handle, 3, "end");
    self->flush(over.to.handle);
    self->close(over.to.handle);
  });
  BOOST_TEST((over.end.read(sent.size() + 3) == sent + "end"));
  BOOST_TEST(over.to.receive(1) == "");
  BOOST_TEST(comes_true([] { return lanes_of_this_process() == 1; }));  // this end's
}

// TS-3, WC-2: the network thread sleeps for longer than a quiet connection is watched, and the end of that one wakes it.
BOOST_AUTO_TEST_CASE(a_connection_that_was_quiet_for_long_is_forgotten_when_it_ends) {
  lane_to_broker over(receive_policy::exactly(5));
  inbox got(5);
  over.on_data([&](caf::io::broker*, const std::string& bytes) { got.add(bytes); });
  over.end.met.lane->outgoing.begin(5);
  over.end.write("12345");
  BOOST_TEST(got.all() == "12345");
  BOOST_REQUIRE(comes_true([&] { return over.end.met.lane->outgoing.has_to_wake_reader(); }));
  const auto long_quiet = std::chrono::steady_clock::now() + 2 * troupe::network::watched_connections::watched_for;
  while (std::chrono::steady_clock::now() < long_quiet) std::this_thread::yield();
  ::close(std::exchange(over.to.client, -1));
  BOOST_TEST(over.is_closed());
}

// TS-5
BOOST_AUTO_TEST_CASE(what_was_in_memory_is_consumed_before_the_end) {
  lane_to_broker over(receive_policy::exactly(3), "one");
  const auto sent = some_bytes(900'000);
  std::string got;
  bool came_after_the_end = false;
  over.on_data([&](caf::io::broker*, const std::string& bytes) {
    came_after_the_end = came_after_the_end || over.to.closed != 0;
    got += bytes;
  });
  over.end.met.lane->outgoing.begin(3);
  over.end.write(sent);
  ::close(std::exchange(over.to.client, -1));
  over.end.met.bell = troupe::support::owned_descriptor();
  BOOST_TEST(over.is_closed());
  over.to.run([&](caf::io::broker*) { BOOST_TEST((got == sent)); });
  BOOST_TEST(!came_after_the_end);
}

// TS-2, TS-6: nobody watches it any more when it goes on.
BOOST_AUTO_TEST_CASE(a_halted_broker_gets_nothing_out_of_memory) {
  lane_to_broker over(receive_policy::exactly(5));
  std::promise<void> first;
  inbox got(50);
  int parts = 0;
  over.on_data([&](caf::io::broker* self, const std::string& bytes) {
    got.add(bytes);
    if (++parts > 1) return;
    self->halt(over.to.handle);
    first.set_value();
  });
  const auto sent = some_bytes(50);
  over.end.met.lane->outgoing.begin(5);
  over.end.write(sent.substr(0, 25));
  BOOST_REQUIRE((first.get_future().wait_for(long_enough) == std::future_status::ready));
  over.end.write(sent.substr(25));
  over.end.ring();
  const auto unwatched = std::chrono::steady_clock::now() + 2 * troupe::network::watched_connections::watched_for;
  while (std::chrono::steady_clock::now() < unwatched) over.to.run([&](caf::io::broker*) { BOOST_REQUIRE(parts == 1); });
  over.to.run([&](caf::io::broker* self) { self->trigger(over.to.handle); });
  BOOST_TEST((got.all() == sent));
}

// TS-3: nothing else would tell a broker that reads nothing.
BOOST_AUTO_TEST_CASE(a_halted_broker_that_writes_is_told_that_nobody_reads_memory) {
  lane_to_broker over(receive_policy::exactly(5));
  over.to.run([&](caf::io::broker* self) { self->halt(over.to.handle); });
  over.to.write(some_bytes(3'000'000));
  over.end.read(100);
  over.end.met = {};
  ::close(std::exchange(over.to.client, -1));
  BOOST_TEST(over.is_closed());
}

// TS-3
BOOST_AUTO_TEST_CASE(counters_that_cannot_be_end_the_connection) {
  lane_to_broker over(receive_policy::exactly(5));
  over.end.met.lane->outgoing.begin(5);
  const std::string odd(12'345, 'x');
  over.end.met.lane->outgoing.write(odd.data(), odd.size());
  std::uint64_t* written = nullptr;  // where either end has the memory: the scribe gives it back once this cannot be
  std::ifstream maps("/proc/self/maps");
  for (std::string line; written == nullptr && std::getline(maps, line);) {
    if (line.find("memfd:troupe lane") == std::string::npos) continue;
    auto* words = reinterpret_cast<std::uint64_t*>(std::stoull(line, nullptr, 16));
    auto* end = words + 512;
    auto* found = std::find_if(words, end, [&](std::uint64_t& each) { return std::atomic_ref(each).load() == odd.size(); });
    if (found != end) written = found;
  }
  BOOST_REQUIRE(written != nullptr);
  std::atomic_ref(*written).store(~std::uint64_t{0});
  over.end.ring();
  BOOST_TEST(over.is_closed());
}

BOOST_AUTO_TEST_CASE(bytes_by_tcp_after_memory_was_used_end_the_connection) {
  lane_to_broker over(receive_policy::exactly(5));
  inbox got(5);
  over.on_data([&](caf::io::broker*, const std::string& bytes) { got.add(bytes); });
  over.end.met.lane->outgoing.begin(5);
  over.end.write("12345");
  BOOST_TEST(got.all() == "12345");
  over.to.send("more.");
  BOOST_TEST(over.is_closed());
  over.to.run([&](caf::io::broker*) { BOOST_TEST(!got.has_more_than(5)); });
}

// TS-5: its memory outlives it.
BOOST_AUTO_TEST_CASE(what_a_process_that_was_killed_left_in_memory_is_consumed) {
  const auto sent = some_bytes(700'000);
  std::array<int, 2> pipe_to_child{};
  BOOST_REQUIRE(::pipe(pipe_to_child.data()) == 0);
  const auto child = ::fork();
  if (child == 0) {
    std::uint16_t port = 0;
    if (::read(pipe_to_child[0], &port, sizeof port) != sizeof port) ::_exit(1);
    const int caller = called_on_loopback(port);
    auto door = troupe::network::lane_door::open(caller);
    char go = 0;
    if (::read(pipe_to_child[0], &go, 1) != 1 || ::send(caller, "first", 5, 0) != 5) ::_exit(1);
    troupe::network::lane_with_bell met;
    while (!met.lane) met = door->answer();
    met.lane->outgoing.begin(5);
    for (std::size_t at = 0; at < sent.size();) at += met.lane->outgoing.write(sent.data() + at, sent.size() - at).value();
    ::kill(::getpid(), SIGKILL);
  }
  inbox got(5 + sent.size());
  connection to(receive_policy::exactly(5), {}, [&](std::uint16_t port) {
    BOOST_REQUIRE(::write(pipe_to_child[1], &port, sizeof port) == sizeof port);
    return -1;
  });
  to.run([&](caf::io::broker*) { to.on_data = [&](caf::io::broker*, const std::string& bytes) { got.add(bytes); }; });
  BOOST_REQUIRE(::write(pipe_to_child[1], "g", 1) == 1);
  BOOST_TEST((got.all() == "first" + sent));
  int how = 0;
  BOOST_TEST(::waitpid(child, &how, 0) == child);
  BOOST_TEST(WTERMSIG(how) == SIGKILL);
  for (const int each : pipe_to_child) ::close(each);
}

BOOST_AUTO_TEST_CASE(an_end_that_never_takes_the_memory_is_served_by_tcp) {
  connection to(receive_policy::exactly(1));
  const end_by_hand end(to.client);
  to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
    self->write(to.handle, bytes.size(), bytes.data());
    self->flush(to.handle);
  };
  for (int i = 0; i < 40; ++i) {
    to.send("a");
    BOOST_TEST(to.receive(1) == "a");
  }
}

BOOST_AUTO_TEST_CASE(where_shared_memory_is_turned_off_nobody_knocks) {
  connection to(receive_policy::exactly(1), without_shared_memory());
  auto door = troupe::network::lane_door::open(to.client);
  to.on_data = [&](caf::io::broker* self, const std::string& bytes) {
    self->write(to.handle, bytes.size(), bytes.data());
    self->flush(to.handle);
  };
  for (int i = 0; i < 3; ++i) {
    to.send("a");
    BOOST_TEST(to.receive(1) == "a");
  }
  BOOST_TEST(!door->answer().lane);
}

// TS-1, TS-5: whoever has the memory, and whatever is on its way when either direction begins to use it.
BOOST_AUTO_TEST_CASE(two_scribes_get_everything_across_by_memory_or_by_tcp) {
  const auto sent = some_bytes(std::size_t{3} << 20);
  for (const bool first_shares : {true, false})
    for (const bool second_shares : {true, false}) {
      const auto options = [](bool shares) { return shares ? troupe::settings{} : without_shared_memory(); };
      a_caller caller(options(first_shares));
      const std::function<int(std::uint16_t)> call = [&](std::uint16_t port) {
        caller.call(port);
        return -1;
      };
      connection called(receive_policy::at_most(10'000), options(second_shares), call);
      inbox there(sent.size());
      inbox back(sent.size());
      called.on_data = [&](caf::io::broker* self, const std::string& bytes) {
        there.add(bytes);
        self->write(called.handle, bytes.size(), bytes.data());
        self->flush(called.handle);
      };
      caller.on_data = [&](const std::string& bytes) { back.add(bytes); };
      std::mt19937 random(3);
      for (std::size_t at = 0; at < sent.size();) {
        const auto bytes = std::min<std::size_t>(1 + random() % (at < 10'000 ? 50 : 100'000), sent.size() - at);
        caller.write(sent.substr(at, bytes));
        at += bytes;
      }
      BOOST_TEST((there.all() == sent));
      BOOST_TEST((back.all() == sent));
      BOOST_TEST(lanes_of_this_process() == (first_shares && second_shares ? 2 : 0));
    }
  BOOST_TEST(lanes_of_this_process() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
