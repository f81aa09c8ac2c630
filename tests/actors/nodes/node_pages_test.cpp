// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <future>
#include <string>

#include <troupe/actors/node.hpp>
#include <troupe/actors/nodes/node_pages.hpp>

#include "actors/loopback_nodes.hpp"
#include "support/contains.hpp"
#include "support/http_client.hpp"
#include "support/metrics_rules.hpp"

using troupe::test::becomes_true;
using troupe::test::body_of;
using troupe::test::contains;
using troupe::test::http_client;
using troupe::test::loopback_settings;

namespace {

troupe::settings with_pages(const std::string& name) {
  auto result = loopback_settings(name);
  result.metrics = "0";
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pages_of_a_node)

BOOST_AUTO_TEST_CASE(a_node_is_healthy_while_it_serves) {  // NP-1
  std::string joining;
  troupe::node first(loopback_settings("first"));
  auto with = with_pages("a");
  with.join = {"127.0.0.1:" + std::to_string(first.port())};
  with.prepare = [&](troupe::node& here) {
    joining = http_client::ask(here.metrics_port(), "/healthz");
    here.functions().add("wait", [&](troupe::call_arguments&) { return troupe::call_reply{}; });
  };
  troupe::node a(with);
  BOOST_TEST(joining.starts_with("HTTP/1.1 503 "), joining);
  BOOST_TEST(body_of(joining) == "node 'a' starts: it has not joined the nodes that it was told to join\n");
  const auto port = a.metrics_port();
  BOOST_TEST(http_client::ask(port, "/healthz").starts_with("HTTP/1.1 200 "));

  std::promise<void> begun;
  std::promise<void> let_go;
  a.functions().add("block", [&](troupe::call_arguments&) {
    begun.set_value();
    let_go.get_future().wait();
    return troupe::call_reply{};
  });
  auto blocked = a.self().call("block");
  begun.get_future().wait();
  BOOST_TEST(http_client::ask(port, "/healthz").starts_with("HTTP/1.1 200 "));  // its only worker computes
  auto stopping = std::async(std::launch::async, [&] { a.stop(); });
  std::string answer;
  BOOST_TEST(becomes_true([&] { return (answer = http_client::ask(port, "/healthz")).starts_with("HTTP/1.1 503 "); }), answer);
  BOOST_TEST(body_of(answer) == "node 'a' stops\n");
  let_go.set_value();
  stopping.get();
  BOOST_CHECK_THROW(http_client::ask(port, "/healthz"), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(metrics_name_the_peers_and_follow_the_rules_of_prometheus) {
  troupe::node a(with_pages("a"));
  troupe::node b(loopback_settings("b"));
  a.functions().add("nothing", [](troupe::call_arguments&) { return troupe::call_reply{}; });
  b.join("127.0.0.1", a.port());
  b.peer("a").call("nothing").get();
  std::string page;
  BOOST_TEST(becomes_true([&] {
               page = body_of(http_client::ask(a.metrics_port(), "/metrics"));
               return contains(page, "troupe_peer_up{peer=\"b\"} 1\n") && contains(page, "troupe_calls_run_total 1\n");
             }),
             page);
  for (const auto& problem : troupe::test::problems_of_metrics(page)) BOOST_ERROR(problem);
  BOOST_TEST(http_client::ask(a.metrics_port(), "/").starts_with("HTTP/1.1 404 "));
  BOOST_TEST(b.metrics_port() == 0);
}

BOOST_AUTO_TEST_CASE(many_requests_ask_the_node_once) {  // NP-2
  troupe::node a(with_pages("a"));
  const auto uptime = [&] {
    const auto page = body_of(http_client::ask(a.metrics_port(), "/metrics"));
    const std::string name = "\ntroupe_uptime_seconds ";
    return page.substr(page.find(name) + name.size(), 5);
  };
  int changes = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::string last = uptime();
  for (int i = 0; i < 200; ++i)
    if (const auto now = uptime(); now != last) {
      ++changes;
      last = now;
    }
  const auto time = std::chrono::steady_clock::now() - begin;
  BOOST_TEST(changes <= time / troupe::nodes::node_pages::memory + 1);
}

BOOST_AUTO_TEST_SUITE_END()
