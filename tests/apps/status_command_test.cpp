// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <chrono>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/ready_line.hpp"
#include "support/loopback_socket.hpp"
#include "support/program.hpp"

using namespace troupe::apps;
using namespace troupe::apps::test;
using namespace std::chrono_literals;

namespace {

std::string address_printed_by(program& node) {
  auto ready = ready_line::parse(node.line_that([](auto& line) { return ready_line::parse(line).has_value(); }));
  BOOST_REQUIRE_MESSAGE(ready, "the node said: " << node.text());
  return ready->address();
}

void check_status_fails(const std::string& address, const std::string& words) {
  program status({"status", address, "--deadline-ms", "300"});
  BOOST_TEST(status.how_it_ends() == "exited with 1");
  BOOST_TEST(status.lines().size() == 1u, status.text());
  BOOST_TEST(status.text().starts_with("troupe: "), status.text());
  BOOST_TEST(status.text().find(words) != std::string::npos, "expected '" << words << "' in: " << status.text());
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_status_of_a_node_is_a_table_or_json) {  // SD-1
  program first({"node", "--name", "stage1"});
  const auto address = address_printed_by(first);
  program second({"node", "--name", "stage2", "--join", address});
  address_printed_by(second);

  program table({"status", address});
  BOOST_TEST(table.how_it_ends() == "exited with 0");
  BOOST_TEST(table.line_with("stage1 at " + address + ", up for ") != "", table.text());
  BOOST_TEST(table.line_with("contexts   0 open, 0 so far") != "", table.text());
  BOOST_TEST(table.line_with("stage2  127.0.0.1:") != "", table.text());

  program json({"status", address, "--json"});
  BOOST_TEST(json.how_it_ends() == "exited with 0");
  const auto status = nlohmann::json::parse(json.text());
  BOOST_TEST(status.at("name") == "stage1");
  BOOST_TEST(status.at("contexts").at("open") == 0);
  BOOST_TEST(status.at("peers").size() == 1u);  // the asking process is no peer
  BOOST_TEST(status.at("peers").at(0).at("name") == "stage2");
  BOOST_TEST(status.at("peers").at(0).at("up") == true);

  program watch({"status", address, "--json", "--watch", "0.01"});
  BOOST_TEST(watch.line_that([seen = 0](const std::string&) mutable { return ++seen == 3; }) != "");
  watch.signal(SIGINT);
  BOOST_TEST(watch.how_it_ends() == "exited with 0");
}

BOOST_AUTO_TEST_CASE(an_address_without_a_node_is_named_in_one_line) {  // SD-2
  loopback_socket mute;
  check_status_fails("127.0.0.1:" + mute.port(), "no answer from 127.0.0.1:" + mute.port() + " within 0.3 s");
  std::string port;
  {
    loopback_socket gone;
    port = gone.port();
  }
  check_status_fails("127.0.0.1:" + port, "no node listens at 127.0.0.1:" + port);
  check_status_fails("no such host:4001", "the host name 'no such host' has no address");
  program frozen({"node", "--name", "stage1"});
  const auto address = address_printed_by(frozen);
  frozen.signal(SIGSTOP);
  check_status_fails(address, "no answer from " + address);
  program nothing({"status"});
  BOOST_TEST(nothing.how_it_ends() == "exited with 2");
}
