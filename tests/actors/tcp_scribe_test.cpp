// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tcp_scribe.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>

#include <troupe/actors/settings.hpp>
#include <troupe/actors/system_config.hpp>

namespace {

using namespace std::chrono_literals;
using caf::io::receive_policy;

constexpr auto long_enough = 20s;

struct in_broker {
  std::function<void(caf::io::broker*)>* work;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(in_broker)

namespace {

std::string some_bytes(std::size_t count) {
  std::string result(count, '\0');
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<char>(i * 7 + i / 251);
  return result;
}

/// A broker with one connection, and the other end of that.
class connection {
 public:
  std::function<void(caf::io::broker*, const std::string&)> on_data;  // runs in the broker
  std::function<void(caf::io::broker*)> on_passive;
  caf::io::connection_handle handle;
  int closed = 0;  // how often the broker was told
  int client = ::socket(AF_INET, SOCK_STREAM, 0);

  explicit connection(receive_policy::config wanted) : wanted_(wanted) {
    std::promise<std::uint16_t> port;
    run([&](caf::io::broker* self) { port.set_value(self->add_tcp_doorman(0, "127.0.0.1")->second); });
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port.get_future().get());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval no_longer{20, 0};
    ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &no_longer, sizeof no_longer);
    BOOST_REQUIRE(::connect(client, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    BOOST_REQUIRE((connected_.get_future().wait_for(long_enough) == std::future_status::ready));
  }

  ~connection() {
    ::close(client);
    caf::anon_send_exit(broker_, caf::exit_reason::user_shutdown);
  }

  /// In the broker; returns when it is done.
  void run(std::function<void(caf::io::broker*)> work) {
    std::promise<void> done;
    std::function<void(caf::io::broker*)> all = [&](caf::io::broker* self) {
      work(self);
      done.set_value();
    };
    caf::anon_send(broker_, in_broker{&all});
    BOOST_REQUIRE((done.get_future().wait_for(long_enough) == std::future_status::ready));
  }

  void send(const std::string& bytes) const {
    BOOST_REQUIRE(::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }

  /// Until so many bytes came, or the end.
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
  troupe::system_config config_{troupe::settings{}};
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

/// What the broker has got, which the test waits for.
class inbox {
 public:
  explicit inbox(std::size_t expected) : expected_(expected) {}

  void add(const std::string& bytes) {
    got_ += bytes;
    if (got_.size() >= expected_ && !std::exchange(told_, true)) full_.set_value();
  }
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

BOOST_AUTO_TEST_SUITE_END()
