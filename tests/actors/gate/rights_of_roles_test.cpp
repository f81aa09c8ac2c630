// SPDX-License-Identifier: BSD-3-Clause
// What a policy lets the roles of a cluster do, and what a node without the right hears.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <torch/script.h>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/behavior.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/script_module.hpp>
#include <troupe/engine/protocol/weight_throwing.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/registration.hpp>
#include <troupe/troupe.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/gate/liar.hpp"
#include "actors/linear_cluster.hpp"
#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"
#include "support/contains.hpp"

BOOST_AUTO_TEST_SUITE(rights_of_roles)

namespace {

using namespace std::chrono_literals;
using namespace troupe;
using troupe::test::contains;
using troupe::test::liar;
using troupe::test::own_cluster;

/// The log of the host, which is whole when its nodes have ended.
std::string log_in(const own_cluster& mine) {
  std::ifstream in(mine.file("log"));
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The node "host", whose policy gives the role of the node "guest" the rights.
struct host_and_guest {
  const own_cluster& mine;
  node host;
  node guest;

  host_and_guest(const own_cluster& cluster, const std::string& rights)
      : mine(cluster), host(settings_of("host", "member", rights)), guest(settings_of("guest", "visitor", "")) {
    guest.join("127.0.0.1", host.port());
  }

  settings settings_of(const std::string& name, const std::string& role, const std::string& rights) const {
    auto result = mine.settings_of(name, role);
    if (rights.empty()) return result;
    result.log_file = mine.file("log");
    result.policy = mine.file("policy.json");
    std::ofstream(result.policy) << R"({"roles": {"visitor": )" << rights << "}}";
    result.prepare = [](node& here) {
      here.functions().add("forward", [](call_arguments& arguments) { return call_reply{{arguments.tensor(0) * 2}}; });
      here.functions().add("secret", [](call_arguments&) { return call_reply{{at::ones({1})}}; });
      here.functions().add("who", [](call_arguments& arguments) {
        return call_reply{{}, {{"name", arguments.here.name_of(arguments.caller)}}};
      });
      add_module_type(here, "linear", [](const attributes& values) { return std::make_shared<test::linear>(values); });
      add_module_type(here, "other", [](const attributes& values) { return std::make_shared<test::linear>(values); });
    };
    return result;
  }

  peer there() { return guest.peer("host"); }

  /// What the policy's file says from now on; the host reads it when it is told to.
  void write_policy(const std::string& roles) const {
    std::ofstream(mine.file("policy.json")) << R"({"roles": )" << roles << "}";
  }
  void change_policy(const std::string& roles) {
    write_policy(roles);
    host.reload();
  }

  /// What the guest hears; "done" if it may do it.
  static std::string heard(const std::function<void()>& act) {
    try {
      act();
    } catch (const error& refused) {
      return refused.code() == errc::refused ? refused.what() : "not refused, but " + std::string(refused.what());
    }
    return "done";
  }
};

attributes linear_values() { return test::layer(2, 2, 1); }

constexpr pass_number latest_pass{std::numeric_limits<std::uint64_t>::max()};

/// Sends the call as it is. Throws what the node `to` answers.
call_result answer_of(node& from, node& to, const call_request& call) {
  caf::scoped_actor self{from.system()};
  const auto there = caf::actor_cast<caf::actor>(services_of(from).directory.gateway(to.id()));
  call_result result;
  self->request(there, liar::patience, call)
    .receive([&](call_result& came) { result = std::move(came); }, [](const caf::error& why) { throw to_exception(why); });
  return result;
}

template <class T, class... Of>
constexpr bool is_one_of = (std::same_as<T, Of> || ...);

/// Calls `act` with one request of each type.
template <class F, std::size_t... I>
void for_each_request(F&& act, std::index_sequence<I...>) {
  (act(std::variant_alternative_t<I, request>{}), ...);
}
template <class F>
void for_each_request(F&& act) {
  for_each_request(act, std::make_index_sequence<std::variant_size_v<request>>());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_guest_calls_the_function_that_the_policy_names_and_no_other) {  // RB-1, RB-2
  const own_cluster mine;
  {
    host_and_guest all(mine, R"({"call": ["forward", "who"]})");
    BOOST_TEST(all.there().call("forward", {at::ones({1})}).get().tensor(0).item<float>() == 2.0F);
    BOOST_TEST(get<std::string>(all.there().call("who").get().values, "name") == "guest");
    const auto refused = all.heard([&] { all.there().call("secret").get(); });
    BOOST_TEST(contains(refused,
                        "refused to node 'guest' of the role 'visitor': the policy does not let this role call the function "
                        "'secret'"),
               refused);
    BOOST_TEST(all.host.status().requests_refused == 1U);
    // The node itself may do everything.
    BOOST_TEST(all.host.self().call("secret").get().tensor(0).item<float>() == 1.0F);
  }
  const auto log = log_in(mine);
  BOOST_TEST(contains(log, "refused a request: 'secret' called by node 'guest' of the role 'visitor'"), log);
}

BOOST_AUTO_TEST_CASE(the_spans_of_a_pass_come_from_roles_that_may_write_the_trace) {  // RB-1
  for (const bool may : {false, true}) {
    const own_cluster mine;
    host_and_guest all(mine, may ? R"({"trace": true})" : R"({"trace": false})");
    all.guest.functions().add("twice", [](call_arguments& arguments) { return call_reply{{arguments.tensor(0) * 2}}; });
    all.host.set_profiling(true);
    context pass(all.host);
    const auto x = at::ones({2}).requires_grad_();
    pass.backward({all.host.peer("guest").call("twice", {x}).get().tensor(0).sum()}).get();
    const auto has_come = [&] {
      caf::scoped_actor self{all.host.system()};
      bool found = false;
      self->request(services_of(all.host).actors.tracer, liar::patience, support::collect_atom::value)
        .receive(
          [&](const tracing::trace_log& log) {
            found = std::any_of(log.spans.begin(), log.spans.end(),
                                [](const auto& each) { return each.track == "backward on guest"; });
          },
          [](const caf::error& why) { BOOST_ERROR(caf::to_string(why)); });
      return found;
    };
    const auto is_refused = [&] { return all.host.status().requests_refused == 1U; };
    BOOST_TEST((may ? test::becomes_true(has_come) : test::becomes_true(is_refused)));
    BOOST_TEST((may ? !is_refused() : !has_come()));
  }
}

BOOST_AUTO_TEST_CASE(a_policy_that_is_read_again_counts_on_open_connections) {  // PB-1, PB-2, RB-1
  const own_cluster mine;
  {
    host_and_guest all(mine, R"({"call": ["forward"]})");
    const auto forward = [&] { all.there().call("forward", {at::ones({1})}).get(); };
    const auto status = [&] { all.there().status(); };
    const auto make = [&] { all.there().create("linear", linear_values()); };
    BOOST_TEST(all.heard(forward) == "done");
    BOOST_TEST(contains(all.heard(status), "the policy does not let it"));
    all.change_policy(R"({"visitor": {"status": true, "modules": {"linear": ["*"]}}})");
    BOOST_TEST(contains(all.heard(forward), "the policy does not let this role call the function 'forward'"));
    BOOST_TEST(all.heard(status) == "done");
    BOOST_TEST(all.heard(make) == "done");
    // A file with a mistake, and one that is not there.
    const auto fails = [&](const std::string& what) {
      try {
        all.host.reload();
        return false;
      } catch (const error& problem) {
        return problem.code() == errc::misuse && contains(problem.what(), "--policy: " + mine.file("policy.json")) &&
               contains(problem.what(), what) && contains(problem.what(), "; what was read before stays in force");
      }
    };
    all.write_policy(R"({"visitor": {"stat": true}})");
    BOOST_TEST(fails("\"stat\""));
    std::filesystem::remove(mine.file("policy.json"));
    BOOST_TEST(fails("no such file"));
    BOOST_TEST(all.heard(status) == "done");
    // A role that the file names no more: its node stays a member, and each request is refused.
    all.change_policy(R"({"other": {"call": ["*"]}})");
    for (const auto& act : std::vector<std::function<void()>>{forward, status, make})
      BOOST_TEST(contains(all.heard(act), "node 'guest' of the role 'visitor'"));
    BOOST_TEST(all.host.peers() == std::vector<std::string>{"guest"});
    BOOST_TEST(all.host.self().call("secret").get().tensors.size() == 1U);
  }
  const auto log = log_in(mine);
  for (const auto* line : {"\"stat\"", "no such file"}) {
    const auto at = log.find(line);
    BOOST_TEST_REQUIRE(at != std::string::npos, log);
    BOOST_TEST(log.find(line, at + 1) == std::string::npos, log);
  }
}

BOOST_AUTO_TEST_CASE(what_was_let_in_before_a_right_was_taken_goes_on) {
  const own_cluster mine;
  host_and_guest all(mine, R"({"call": ["forward"]})");
  auto x = at::ones({2}).requires_grad_();
  context pass(all.guest);
  auto y = all.there().call("forward", {x}).get().tensor(0);
  all.change_policy(R"({"other": {}})");
  BOOST_TEST(contains(all.heard([&] { all.there().call("forward", {x}).get(); }), "the policy does not let this role"));
  pass.backward({y.sum()}).get();
  BOOST_TEST(pass.gradient(x).sum().item<float>() == 4.0F);
}

BOOST_AUTO_TEST_CASE(who_lost_the_right_to_actors_loses_its_connection_by_the_next_message_to_one) {  // BR-13
  const own_cluster mine;
  {
    host_and_guest all(mine, R"({"call": ["forward"], "actors": true})");
    all.host.publish("adder", caf::actor_cast<caf::strong_actor_ptr>(
                                all.host.system().spawn([]() -> caf::behavior { return {[](int x) { return x + 1; }}; })));
    const auto adder = caf::actor_cast<caf::actor>(all.there().actor("adder"));
    caf::scoped_actor self{all.guest.system()};
    int answer = 0;
    self->request(adder, liar::patience, 1).receive([&](int x) { answer = x; }, [](const caf::error&) {});
    BOOST_TEST(answer == 2);
    all.change_policy(R"({"visitor": {"call": ["forward"]}})");
    BOOST_TEST(contains(all.heard([&] { all.there().actor("adder"); }), "the policy does not let it"));
    BOOST_TEST(all.heard([&] { all.there().call("forward", {at::ones({1})}).get(); }) == "done");
    caf::anon_send(adder, 1);
    BOOST_TEST(troupe::test::becomes_true([&] {
      return contains(log_in(mine),
                      "a message to an actor of a program, which the policy allows no node of the role 'visitor'");
    }));
    BOOST_TEST(troupe::test::becomes_true(
      [&] { return all.heard([&] { all.there().call("forward", {at::ones({1})}).get(); }) == "done"; }));
  }
}

BOOST_AUTO_TEST_CASE(a_node_that_serves_reads_its_policy_again_at_a_hangup) {  // PB-1, PB-2, SE-4
  const own_cluster mine;
  auto* const before = ::signal(SIGHUP, SIG_IGN);  // it would end the process before the node serves
  {
    host_and_guest all(mine, R"({"call": ["forward"]})");
    auto serves = std::async(std::launch::async, [&] { all.host.serve(); });
    const auto forward = [&] { return all.heard([&] { all.there().call("forward", {at::ones({1})}).get(); }); };
    const auto secret = [&] { return all.heard([&] { all.there().call("secret").get(); }); };
    const auto hang_up_until = [&](const std::function<bool()>& is_so) {
      return troupe::test::becomes_true([&] {
        kill(getpid(), SIGHUP);
        return is_so();
      });
    };
    BOOST_TEST(contains(secret(), "the policy does not let this role"));
    all.write_policy(R"({"visitor": {"call": ["secret"]}})");
    BOOST_TEST(hang_up_until([&] { return secret() == "done"; }));
    BOOST_TEST(contains(forward(), "the policy does not let this role"));
    all.write_policy("{");
    BOOST_TEST(hang_up_until([&] { return contains(log_in(mine), "; what was read before stays in force"); }));
    BOOST_TEST(secret() == "done");
    all.host.stop();
    serves.get();
    BOOST_CHECK_THROW(all.host.reload(), troupe::error);  // it has stopped
  }
  ::signal(SIGHUP, before);
}

BOOST_AUTO_TEST_CASE(without_rights_nothing_of_troupes_own_can_be_used) {  // RB-4
  const own_cluster mine;
  host_and_guest all(mine, R"({})");
  const auto expect = [&](const std::string& what, const std::function<void()>& act) {
    const auto text = all.heard(act);
    BOOST_TEST(contains(text, what), "expected '" + what + "', got '" + text + "'");
  };
  expect("make modules of the type 'linear'", [&] { all.there().create("linear", linear_values()); });
  expect("send TorchScript", [&] {
    torch::jit::Module script("Nothing");
    script.define("def forward(self, x):\n  return x\n");
    create_script(all.there(), script);
  });
  expect("ask for the status", [&] { all.there().status(); });
  expect("look for published actors", [&] { all.there().actor("any"); });
  expect("read or write its trace", [&] { all.guest.collect_trace({"host"}); });
  for_each_request([&](auto what) {
    using type = decltype(what);
    if constexpr (is_one_of<type, requests::drop, requests::take, requests::lend, requests::passes>) return;
    if constexpr (requires { what.owner; }) what.owner = all.guest.id();
    expect("the policy does not let this role", [&] { node_access::ask(all.there(), what).get(); });
  });
}

BOOST_AUTO_TEST_CASE(a_role_uses_its_own_modules_as_far_as_the_policy_says) {  // RB-3
  const own_cluster mine;
  host_and_guest all(mine, R"({"modules": {"linear": ["forward"]}, "weights": "read"})");
  auto made = all.there().create("linear", linear_values());
  BOOST_TEST(made.call("forward", {at::ones({1, 2})}).get().tensors.size() == 1U);
  BOOST_TEST(made.parameters().size() >= 1U);
  const auto expect = [&](const std::string& what, const std::function<void()>& act) {
    const auto text = all.heard(act);
    BOOST_TEST(contains(text, what), "expected '" + what + "', got '" + text + "'");
  };
  expect("call the method 'other' of modules of the type 'linear'", [&] { made.call("other", {}).get(); });
  expect("make modules of the type 'other'", [&] { all.there().create("other", linear_values()); });
  expect("change weights", [&] { made.set_parameters(made.parameters()); });
  expect("change weights", [&] { const optimizer made_there(all.guest, {"sgd", {{"lr", 0.1}}}, {made}); });
  // The host has a module of its own, whose number can be guessed.
  const auto own = all.host.self().create("linear", linear_values());
  expect("the caller does not own the object", [&] {
    node_access::ask(all.there(), requests::read{}, {}, {}, {all.host.id(), 2}).get();
  });
  // Nobody takes an object in the name of another node.
  expect("acts in the name of another node, 'host'", [&] {
    node_access::ask(all.there(), requests::drop{all.host.id()}, {}, {}, {all.host.id(), 2}).get();
  });
  BOOST_TEST(all.host.status().objects == 2U);
}

BOOST_AUTO_TEST_CASE(backward_passes_need_no_right_of_their_own) {
  const own_cluster mine;
  host_and_guest all(mine, R"({"call": ["forward"]})");
  auto x = at::ones({2}).requires_grad_();
  context pass(all.guest);
  auto y = all.there().call("forward", {x}).get().tensor(0);
  pass.backward({y.sum()}).get();
  BOOST_TEST(pass.gradient(x).sum().item<float>() == 4.0F);
}

BOOST_AUTO_TEST_CASE(a_pass_goes_through_nodes_that_call_each_other) {
  const own_cluster mine;
  std::ofstream(mine.file("policy.json")) << R"({"roles": {"stage": {"call": ["forward"], "members": true},
                                                            "driver": {"call": ["forward"], "members": true}}})";
  const auto stage = [&](const std::string& name, const std::string& next) {
    auto result = mine.settings_of(name, "stage");
    result.policy = mine.file("policy.json");
    result.prepare = [next](node& here) {
      here.functions().add("forward", [next](call_arguments& arguments) {
        const auto y = arguments.tensor(0) * 2;
        return call_reply{{next.empty() ? y : arguments.here.peer(next).call("forward", {y}).get().tensor(0)}};
      });
    };
    return result;
  };
  node first(stage("first", "second"));
  node second(stage("second", ""));
  node driver(mine.settings_of("driver", "driver"));
  first.join("127.0.0.1", second.port());
  driver.join("127.0.0.1", first.port());
  auto x = at::ones({2}).requires_grad_();
  context pass(driver);
  auto y = driver.peer("first").call("forward", {x}).get().tensor(0);
  pass.backward({y.sum()}, {.deadline = std::chrono::seconds(20)}).get();
  BOOST_TEST(pass.gradient(x).sum().item<float>() == 8.0F);
  BOOST_TEST(first.status().requests_refused + second.status().requests_refused == 0U);
}

BOOST_AUTO_TEST_CASE(only_the_opener_ends_a_context_unless_the_policy_says_otherwise) {
  for (const bool may_end_all : {false, true}) {
    const own_cluster mine;
    host_and_guest all(mine, R"({"call": ["forward"], "contexts": ")" + std::string(may_end_all ? "all" : "own") + "\"}");
    liar mallory(all.mine.kit_of_role("mallory", "visitor"));
    caf::scoped_actor self{mallory.system};
    const auto gateway = mallory.gateway_at(all.host.port());
    context pass(all.guest);
    auto x = at::ones({2}).requires_grad_();
    auto y = all.there().call("forward", {x}).get().tensor(0);
    std::string text = "done";
    self->request(gateway, liar::patience, release_context{pass.id()})
      .receive([](const context_released&) {}, [&](const caf::error& why) { text = to_exception(why).what(); });
    BOOST_TEST(contains(text, "(role visitor), has not opened the context") == !may_end_all,
               text);  // mallory reads no other answer
    if (!may_end_all) pass.backward({y.sum()}).get();
    BOOST_TEST(all.host.status().requests_refused == (may_end_all ? 0U : 1U));
    // The policy is read again while both are connected.
    all.change_policy(R"({"visitor": {"contexts": ")" + std::string(may_end_all ? "own" : "all") + "\"}}");
    text = "done";
    self->request(gateway, liar::patience, release_context{pass.id()})
      .receive([](const context_released&) {}, [&](const caf::error& why) { text = to_exception(why).what(); });
    BOOST_TEST(contains(text, "(role visitor), has not opened the context") == may_end_all, text);
  }
}

BOOST_AUTO_TEST_CASE(only_nodes_with_a_part_in_a_context_send_its_gradients_and_reports) {
  std::promise<void> begun;
  std::promise<void> goes_on;
  const own_cluster mine;
  host_and_guest all(mine, R"({"call": ["forward"]})");
  all.guest.functions().add("slow", [&](call_arguments& arguments) {
    auto y = arguments.tensor(0) * 2;
    y.register_hook([&](const at::Tensor& gradient) {
      begun.set_value();
      goes_on.get_future().wait();
      return gradient;
    });
    return call_reply{{y}};
  });
  node mallory(all.settings_of("mallory", "visitor", ""));
  mallory.join("127.0.0.1", all.host.port());
  context pass(all.host);
  auto x = at::ones({2}).requires_grad_();
  auto y = all.host.peer("guest").call("slow", {x}).get().tensor(0);
  auto done = pass.backward({y.sum()});
  begun.get_future().wait();
  // Nobody gets a part by a call that needs no right, nor ends passes by it.
  call_request call;
  call.what = requests::drop{mallory.id()};
  call.payload.context = pass.id();
  call.payload.message.node = mallory.id();
  call.completed = latest_pass;
  call.failed = {{1}, {2}};
  const auto refused = all.heard([&] { answer_of(mallory, all.host, call); });
  BOOST_TEST(contains(refused, "call functions that need no right in a context in which the caller has no part"), refused);
  call_request question;
  question.what = requests::passes{pass.id().number};
  question.payload.message.node = mallory.id();
  const auto untold = all.heard([&] { answer_of(mallory, all.host, question); });
  BOOST_TEST(contains(untold, "has no part in the context"), untold);
  // Who may not even call this node in the context says that it holds a part of it.
  const auto host = caf::actor_cast<caf::actor>(services_of(mallory).directory.gateway(all.host.id()));
  caf::anon_send(host, context_joined{pass.id(), mallory.id()});
  caf::anon_send(host, participant_quiet{pass.id(), {1}, mallory.id(), protocol::whole_weight()});
  caf::anon_send(host,
                 participant_failed{pass.id(), {1}, mallory.id(), static_cast<std::uint8_t>(errc::function_failed), "lie"});
  propagate_gradients gradients;
  gradients.context = pass.id();
  gradients.pass = {1};
  gradients.from = "mallory";
  gradients.carried = protocol::whole_weight();
  caf::anon_send(host, gradients);
  BOOST_TEST(troupe::test::becomes_true([&] { return all.host.status().requests_refused == 6; }));
  goes_on.set_value();
  done.get();
  BOOST_TEST(pass.gradient(x).sum().item<float>() == 4.0F);
}

// RB-5, GW-18
BOOST_AUTO_TEST_CASE(a_first_call_in_a_context_says_nothing_about_its_passes) {
  const own_cluster mine;
  host_and_guest all(mine, R"({"call": ["forward"]})");
  context pass(all.guest);
  auto x = at::ones({2}).requires_grad_();
  auto y = all.there().call("forward", {x}).get().tensor(0);
  const auto lie = [&](node& liar, const request& what, std::uint64_t number) {
    call_request call;
    call.what = what;
    call.payload.context = {all.guest.id(), number};
    call.payload.message.node = liar.id();
    call.payload.tensors = {at::ones({2})};
    call.completed = latest_pass;
    call.failed = {{1}, {2}, latest_pass};
    return all.heard([&] { answer_of(liar, all.host, call); });
  };
  // The role of this node has no right. It opens no context either.
  node stranger(all.settings_of("stranger", "stranger", ""));
  stranger.join("127.0.0.1", all.host.port());
  const auto self = stranger.id();
  for (const request& what : {request(requests::drop{self}), request(requests::lend{self, self}), request(requests::take{self}),
                              request(requests::passes{}), request(requests::function{"forward"})})
    for (const auto number : {pass.id().number, pass.id().number + 1})
      BOOST_TEST(contains(lie(stranger, what, number), "refused to node 'stranger'"));
  BOOST_TEST(all.host.status().contexts == 1U);
  // This node may call the function, and so takes part in the context from now on.
  node visitor(all.settings_of("other", "visitor", ""));
  visitor.join("127.0.0.1", all.host.port());
  BOOST_TEST(lie(visitor, requests::function{"forward"}, pass.id().number) == "done");
  // Later calls may say what passes have done, as far as that is possible.
  BOOST_TEST(lie(visitor, requests::function{"forward"}, pass.id().number) == "done");
  for (int i = 0; i < 2; ++i) pass.backward({y.sum()}, {.keep_graph = true, .deadline = liar::patience}).get();
  BOOST_TEST(pass.gradient(x).sum().item<float>() == 8.0F);
}

// A pass that this node has followed makes it deaf to earlier passes. So nobody may name any pass.
BOOST_AUTO_TEST_CASE(gradients_of_unknown_nodes_and_impossible_passes_are_refused) {
  const own_cluster mine;
  host_and_guest all(mine, R"({"call": ["forward"]})");
  context pass(all.guest);
  auto x = at::ones({2}).requires_grad_();
  auto y = all.there().call("forward", {x}).get().tensor(0);
  propagate_gradients gradients;
  gradients.context = pass.id();
  gradients.carried = protocol::whole_weight();
  gradients.from = "mallory";
  gradients.pass = {1};
  // This node has a certificate, and has not introduced itself.
  liar mallory(all.mine.kit_of_role("mallory", "visitor"));
  caf::anon_send(mallory.gateway_at(all.host.port()), gradients);
  BOOST_TEST(troupe::test::becomes_true([&] { return all.host.status().requests_refused == 1; }));
  // This node takes part in the context.
  node visitor(all.settings_of("other", "visitor", ""));
  visitor.join("127.0.0.1", all.host.port());
  call_request call;
  call.what = requests::function{"forward"};
  call.payload.context = pass.id();
  call.payload.message.node = visitor.id();
  call.payload.tensors = {at::ones({2})};
  answer_of(visitor, all.host, call);
  gradients.from = "other";
  gradients.pass = latest_pass;
  caf::anon_send(caf::actor_cast<caf::actor>(services_of(visitor).directory.gateway(all.host.id())), gradients);
  BOOST_TEST(troupe::test::becomes_true([&] { return all.host.status().requests_refused == 2; }));
  // The opener itself takes part in no pass that it has not begun, from whichever node its gradients come.
  gradients.from = "host";
  gradients.pass = {7};
  caf::anon_send(caf::actor_cast<caf::actor>(services_of(all.host).directory.gateway(all.guest.id())), gradients);
  all.host.peer("guest").status();  // is answered after the gradients have been read
  BOOST_TEST(all.guest.status().graph_tasks == 0U);
  pass.backward({y.sum()}, {.deadline = liar::patience}).get();
  BOOST_TEST(pass.gradient(x).sum().item<float>() == 4.0F);
}

// The opener of a context may do with it what it likes. It takes a limited share of this node.
BOOST_AUTO_TEST_CASE(an_opener_names_a_limited_number_of_passes) {  // CR-6, CR-7
  constexpr std::uint64_t most_tasks = passes::context_record::most_tasks;
  constexpr std::uint64_t most_failed = 1000;  // of these passes
  const own_cluster mine;
  host_and_guest all(mine, R"({"call": ["forward"]})");
  context pass(all.guest);
  all.there().call("forward", {at::ones({2}).requires_grad_()}).get();
  const auto host = caf::actor_cast<caf::actor>(services_of(all.guest).directory.gateway(all.host.id()));
  for (std::uint64_t number = 1; number <= most_tasks + 3; ++number) {
    caf::anon_send(host, prune{pass.id(), {number}, {}, protocol::whole_weight(), false, false});
    if (number % 512 == 0) all.there().call("forward", {at::ones({1})}).get();  // the host keeps up, and is up for the guest
  }
  BOOST_TEST(troupe::test::becomes_true([&] { return all.host.status().requests_refused == 3; }));
  BOOST_TEST(all.host.status().graph_tasks == most_tasks);
  std::string text = "answered";
  caf::scoped_actor self{all.guest.system()};
  self->request(host, liar::patience, discover{pass.id(), {most_tasks + 4}, {}, false, false})
    .receive([](const discovered&) {}, [&](const caf::error& why) { text = to_exception(why).what(); });
  BOOST_TEST(contains(text, "takes part in 4096 passes of node 'guest'"), text);
  // The opener learns at once why its pass can't run. Another thread, because contexts do not nest.
  auto failed = std::async(std::launch::async, [&] {
    context another(all.guest);
    const auto x = at::ones({2}).requires_grad_();
    const auto y = all.there().call("forward", {x}).get().tensor(0);
    return all.heard([&] { another.backward({y.sum()}, {.deadline = liar::patience}).get(); });
  });
  const auto reason = failed.get();
  BOOST_TEST(contains(reason, "takes part in 4096 passes of node 'guest'"), reason);
  call_request call;
  call.what = requests::function{"forward"};
  call.payload.context = pass.id();
  call.payload.message.node = all.guest.id();
  call.payload.tensors = {at::ones({2})};
  for (std::uint64_t number = 1; number <= most_failed; ++number) call.failed.push_back({number});
  BOOST_TEST(all.heard([&] { answer_of(all.guest, all.host, call); }) == "done");
  BOOST_TEST(all.host.status().graph_tasks == most_tasks - most_failed);
  for (std::uint64_t number = 1; number <= passes::context_record::most_failed; ++number)
    call.failed.push_back({most_tasks + number});
  const auto refused = all.heard([&] { answer_of(all.guest, all.host, call); });
  BOOST_TEST(contains(refused, "has more than 4096 failed passes"), refused);
}

// GW-18, CO-1. The node in the middle of a chain has no part yet. Its call is given the gradients all the same.
BOOST_AUTO_TEST_CASE(a_call_by_way_of_a_new_node_is_given_the_gradients_of_earlier_passes) {
  const own_cluster mine;
  std::ofstream(mine.file("policy.json")) << R"({"roles": {"stage": {"call": ["forward", "gathered"], "members": true}}})";
  const auto w = at::full({2}, 2.0F).requires_grad_();
  const auto stage = [&](const std::string& name, const std::string& next) {
    auto result = mine.settings_of(name, "stage");
    result.policy = mine.file("policy.json");
    result.prepare = [next, w](node& here) {
      here.functions().add("forward", [w](call_arguments& arguments) { return call_reply{{arguments.tensor(0) * w}}; });
      here.functions().add("gathered", [next, w](call_arguments& arguments) {
        if (!next.empty()) return arguments.here.peer(next).call("gathered").get();
        const auto gathered = arguments.gradients->find(w);
        return call_reply{{gathered.defined() ? gathered.detach() : at::zeros({2})}};
      });
    };
    return result;
  };
  node first(stage("first", "second"));
  node second(stage("second", ""));
  node driver(stage("driver", ""));
  first.join("127.0.0.1", second.port());
  driver.join("127.0.0.1", first.port());
  context pass(driver);
  auto y = driver.peer("second").call("forward", {at::ones({2}).requires_grad_()}).get().tensor(0);
  pass.backward({y.sum()}, {.keep_graph = true, .deadline = liar::patience}).get();
  BOOST_TEST(driver.peer("first").call("gathered").get().tensor(0).sum().item<float>() == 2.0F);
  for (auto* each : {&first, &second, &driver}) BOOST_TEST(each->status().requests_refused == 0U);
}

BOOST_AUTO_TEST_CASE(a_policy_needs_certificates_and_says_itself_who_may_send_code) {
  settings with;
  with.policy = "policy.json";
  BOOST_CHECK_EXCEPTION(check(with), error,
                        [](const error& e) { return contains(e.what(), "has no effect without --certificates"); });
  with.certificates = "kit.pem";
  with.allow_scripts = true;
  BOOST_CHECK_EXCEPTION(check(with), error, [](const error& e) { return contains(e.what(), "leave out --allow-scripts"); });
  const own_cluster mine;
  auto missing = mine.settings_of("a");
  missing.policy = mine.file("none.json");
  BOOST_CHECK_EXCEPTION(node{missing}, error,
                        [](const error& e) { return contains(e.what(), "--policy: ") && contains(e.what(), "no such file"); });
}

// Other nodes can't get the id of this node, which may do everything with itself.
BOOST_AUTO_TEST_CASE(nobody_introduces_itself_with_the_id_of_the_node_it_talks_to) {  // IO-1
  const own_cluster mine;
  host_and_guest all(mine, R"({"call": ["forward"]})");
  liar mallory(all.mine.kit_of_role("mallory", "visitor"));
  caf::scoped_actor self{mallory.system};
  const auto gateway = mallory.gateway_at(all.host.port());
  hello greeting;
  greeting.name = "mallory";
  greeting.id = all.host.id();
  greeting.host = "127.0.0.1";
  greeting.port = 1;
  greeting.protocol = protocol_version;
  std::string text = "taken";
  self->request(gateway, liar::patience, greeting, caf::actor_cast<caf::strong_actor_ptr>(gateway))
    .receive([](const welcome&) {}, [&](const caf::error& why) { text = to_exception(why).what(); });
  BOOST_TEST(contains(text, "from another node"), text);
  call_request call;
  call.what = requests::function{"secret"};
  call.payload.message.node = all.host.id();
  self->request(gateway, liar::patience, call)
    .receive([](const call_result&) { BOOST_ERROR("the call ran"); },
             [&](const caf::error& why) { text = to_exception(why).what(); });
  BOOST_TEST(contains(text, "from another node"), text);
}

BOOST_AUTO_TEST_SUITE_END()
