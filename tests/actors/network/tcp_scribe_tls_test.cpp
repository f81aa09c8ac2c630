// SPDX-License-Identifier: BSD-3-Clause
// Connections with TLS. tests/actors/gate has the tests of nodes on such connections.
#include <troupe/actors/network/tcp_scribe.hpp>

#include <fcntl.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <string>

#include <boost/test/unit_test.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/gate/tls_pair.hpp"
#include "actors/network/broker_connection.hpp"

BOOST_AUTO_TEST_SUITE(tcp_scribe_with_tls)

namespace {

using namespace std::chrono_literals;
using namespace troupe::test;
using caf::io::receive_policy;

/// A connection to a broker by TLS, whose calling end the test has.
struct proven_connection {
  own_cluster mine;
  std::unique_ptr<tls_session> caller;
  broker_connection to;

  explicit proven_connection(receive_policy::config wanted)
      : to(wanted, mine.settings_of("b"), [this](std::uint16_t port) { return prove(called_on_loopback(port)); }) {}
  ~proven_connection() { caller.reset(); }

  int prove(int socket) {
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
    caller = std::make_unique<tls_session>(of(mine.kit("a")), socket, end_of::calling, "b");
    const auto refused = troupe::gate::prove_within(*caller, socket, 20s);
    BOOST_REQUIRE_MESSAGE(!refused, refused->why);
    return socket;
  }

  /// Returns when the system has taken all bytes.
  void send(const std::string& bytes) const {
    const auto until = std::chrono::steady_clock::now() + long_enough;
    for (std::size_t gone = 0; gone < bytes.size() || caller->has_unsent();) {
      BOOST_REQUIRE((std::chrono::steady_clock::now() < until));
      const auto went = caller->write(bytes.data() + gone, bytes.size() - gone, false);
      if (went > 0) gone += static_cast<std::size_t>(went);
    }
  }
};

}  // namespace

// TS-2. TLS holds bytes that the socket does not announce any more: records that came together, of which the broker wanted few.
BOOST_AUTO_TEST_CASE(what_tls_holds_waits_for_a_broker_that_was_halted) {
  constexpr std::size_t chunk = 30'000;
  constexpr int chunks = 4;
  std::promise<void> passive[chunks];
  std::string got;
  int pauses = 0;
  proven_connection by(receive_policy::exactly(chunk));
  by.to.on_data = [&](caf::io::broker*, const std::string& bytes) { got += bytes; };
  by.to.on_passive = [&](caf::io::broker*) { passive[pauses++].set_value(); };
  by.to.run([&](caf::io::broker* self) { self->trigger(by.to.handle, 1); });
  const auto sent = some_bytes(chunk * chunks);
  by.send(sent);
  for (int i = 0; i < chunks; ++i) {
    BOOST_REQUIRE((passive[i].get_future().wait_for(long_enough) == std::future_status::ready));
    by.to.run([&](caf::io::broker* self) {
      BOOST_TEST((got == sent.substr(0, chunk * static_cast<std::size_t>(i + 1))));
      self->trigger(by.to.handle, 1);
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
