// SPDX-License-Identifier: BSD-3-Clause
// The status of a node, also while the node works.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <chrono>
#include <future>
#include <memory>

#include <troupe/actors/status_client.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/odd_server.hpp"

using namespace std::chrono_literals;

namespace {

using troupe::test::becomes_idle;
using troupe::test::loopback_settings;

struct nodes_with_status {
  nodes_with_status() {
    b.functions().add("times_weight", [this](troupe::call_arguments& arguments) {
      return troupe::call_reply{{arguments.tensors.at(0) * weight}};
    });
    b.functions().add("refuse_backward", [](troupe::call_arguments& arguments) {
      auto x = arguments.tensors.at(0) * 2;
      x.register_hook([](at::Tensor) -> at::Tensor { throw std::runtime_error("hook refuses"); });
      return troupe::call_reply{{x}};
    });
    a.join("127.0.0.1", b.port());
  }

  at::Tensor weight = torch::full({2}, 3.0, torch::requires_grad());
  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
};

const troupe::peer_status& of_peer(const troupe::node_status& status, const std::string& name) {
  for (const auto& each : status.peers)
    if (each.who.name == name) return each;
  throw std::runtime_error("the status of '" + status.self.name + "' has no peer '" + name + "'");
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(status, nodes_with_status)

BOOST_AUTO_TEST_CASE(a_pass_is_counted_on_both_sides_and_by_peer) {
  {
    troupe::context pass(a);
    auto x = torch::ones({2}, torch::requires_grad());
    auto y = a.peer("b").call("times_weight", {x}).get().tensors.at(0);
    pass.backward({y.sum()}).get();

    const auto here = a.status();
    BOOST_TEST(here.self.name == "a");
    BOOST_TEST(here.self.port == a.port());
    BOOST_TEST(here.contexts == 1u);
    BOOST_TEST(here.passes_completed == 1u);
    BOOST_TEST(here.passes_running == 0u);
    BOOST_TEST(here.calls_made == 1u);
    BOOST_TEST(here.calls_waiting == 0u);
    BOOST_TEST(here.functions_run > 0u);
    BOOST_TEST(of_peer(here, "b").messages_sent == 2u);  // the call, the gradients of its result
    BOOST_TEST(of_peer(here, "b").bytes_sent == 12u);    // two floats, then one float: the two gradients are equal
    BOOST_TEST(of_peer(here, "b").bytes_received == 16u);
    BOOST_TEST(of_peer(here, "b").contexts == 0u);

    auto there = a.peer("b").status();
    while (there.functions_run == 0) there = a.peer("b").status();  // counted when the burst is over
    BOOST_TEST(there.self.name == "b");
    BOOST_TEST(there.contexts == 1u);
    BOOST_TEST(there.calls_run == 1u);
    BOOST_TEST(there.passes_completed == 0u);
    BOOST_TEST(of_peer(there, "a").contexts == 1u);
    BOOST_TEST(of_peer(there, "a").messages_received == 2u);
    BOOST_TEST(of_peer(there, "a").bytes_received == 12u);
    BOOST_TEST(of_peer(there, "a").bytes_sent == 16u);
  }
  BOOST_TEST(becomes_idle(a));  // AC-1
  BOOST_TEST(becomes_idle(b));
  BOOST_TEST(b.status().contexts_opened == 1u);
}

BOOST_AUTO_TEST_CASE(a_node_answers_while_its_only_worker_computes) {
  std::promise<void> begun;
  std::promise<void> let_go;
  b.functions().add("wait", [&](troupe::call_arguments&) {
    begun.set_value();
    let_go.get_future().wait();
    return troupe::call_reply{};
  });
  auto first = a.peer("b").call("wait");
  begun.get_future().wait();
  auto second = a.peer("b").call("times_weight", {torch::ones({2})});
  auto busy = a.peer("b").status();
  while (busy.calls_queued == 0) busy = a.peer("b").status();
  BOOST_TEST(busy.calls_running == 1u);
  BOOST_TEST(busy.calls_queued == 1u);
  BOOST_TEST(a.status().calls_waiting == 2u);
  let_go.set_value();
  first.get();
  second.get();
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(b));
}

BOOST_AUTO_TEST_CASE(what_fails_is_counted_and_leaves_nothing_under_way) {
  {
    troupe::context pass(a);
    auto x = torch::ones({2}, torch::requires_grad());
    auto y = a.peer("b").call("refuse_backward", {x}).get().tensors.at(0);
    BOOST_CHECK_THROW(pass.backward({y.sum()}).get(), troupe::error);
    BOOST_CHECK_THROW(a.peer("b").call("no_such_function").get(), troupe::error);
    auto status = a.status();
    BOOST_TEST(status.passes_failed == 1u);
    BOOST_TEST(status.calls_failed == 1u);
  }
  BOOST_TEST(becomes_idle(a));
  BOOST_TEST(becomes_idle(b));
}

BOOST_AUTO_TEST_CASE(objects_are_counted_and_a_peer_that_left_is_shown_as_down) {
  auto c = std::make_unique<troupe::node>(loopback_settings("c"));
  a.join("127.0.0.1", c->port());
  a.peer("c");
  c->stop();
  auto status = a.status();
  while (of_peer(status, "c").up) status = a.status();
  BOOST_TEST(of_peer(status, "b").up);
  BOOST_TEST(status.peers.back().who.name == "c");
  BOOST_TEST(status.objects == 0u);
}

BOOST_AUTO_TEST_CASE(a_client_outside_the_cluster_asks_without_being_a_peer) {  // SL-1
  troupe::status_client client("127.0.0.1", b.port(), 5s);
  BOOST_TEST(client.ask(5s).self.name == "b");
  BOOST_TEST(client.ask(5s).peers.size() == 1u);
  BOOST_TEST(b.peers().size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_node_tells_its_version_its_memory_and_how_it_reaches_its_peers) {
  const auto status = a.status();
  BOOST_TEST(status.version == troupe::version);
  BOOST_TEST(status.resident_bytes > 1u << 20);
  BOOST_TEST(!of_peer(status, "b").transport.empty());
  BOOST_TEST(of_peer(status, "b").transport != "no network");
}

BOOST_AUTO_TEST_CASE(a_node_asks_its_peers_for_a_client) {  // SH-1
  auto c = std::make_unique<troupe::node>(loopback_settings("c"));
  c->join("127.0.0.1", a.port());
  a.peer("c");
  troupe::status_client client("127.0.0.1", a.port(), 5s);
  auto all = client.ask_cluster(5s);
  BOOST_TEST(all.asked.self.name == "a");
  BOOST_TEST_REQUIRE(all.others.size() == 2u);
  for (const auto& each : all.others) {
    BOOST_TEST_REQUIRE(each.status.has_value(), each.problem);
    BOOST_TEST(each.status->self.name == each.seen.who.name);
  }
  c->stop();
  while (all.others.back().seen.up) all = client.ask_cluster(5s);
  BOOST_TEST(all.others.back().seen.who.name == "c");
  BOOST_TEST(all.others.back().seen.gone);
  BOOST_TEST(!all.others.back().status.has_value());
  BOOST_TEST(all.others.back().problem == "left: its node stopped");
  BOOST_TEST(all.others.front().status.has_value());
}

BOOST_AUTO_TEST_CASE(who_listens_and_is_no_node_is_told_from_nobody) {  // SL-1
  const auto fails_with = [](troupe::errc code, const std::string& text) {
    return [code, text](const troupe::error& e) {
      BOOST_TEST_MESSAGE(e.what());
      return e.code() == code && std::string(e.what()).find(text) != std::string::npos;
    };
  };
  troupe::test::odd_server stranger("220 mail");
  troupe::test::odd_server mute;
  std::uint16_t nobody = 0;
  {
    troupe::test::odd_server gone;
    nobody = gone.port();
  }
  using client = troupe::status_client;
  BOOST_CHECK_EXCEPTION(client("127.0.0.1", stranger.port(), 5s), troupe::error,
                        fails_with(troupe::errc::refused, "is no troupe node"));
  BOOST_CHECK_EXCEPTION(client("127.0.0.1", mute.port(), 200ms), troupe::error,
                        fails_with(troupe::errc::deadline_passed, "within 0.2 s"));
  BOOST_CHECK_EXCEPTION(client("127.0.0.1", nobody, 5s), troupe::error,
                        fails_with(troupe::errc::unknown_peer, "127.0.0.1:" + std::to_string(nobody)));
}

BOOST_AUTO_TEST_CASE(a_client_says_once_which_host_it_does_not_find) {
  BOOST_CHECK_EXCEPTION(troupe::status_client("no such host", 1, 5s), troupe::error, [](const troupe::error& e) {
    BOOST_TEST_MESSAGE(e.what());
    return e.code() == troupe::errc::misuse && std::string(e.what()).starts_with("the host name 'no such host' has no address");
  });
}

BOOST_AUTO_TEST_SUITE_END()
