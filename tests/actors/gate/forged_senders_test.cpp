// SPDX-License-Identifier: BSD-3-Clause
// A node that has a certificate of the cluster, and says that it is another node.
#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/message_id.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/system_messages.hpp>

#include <troupe/actors/gate/introduced_nodes.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/registration.hpp>
#include <troupe/troupe.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/gate/liar.hpp"
#include "actors/loopback_nodes.hpp"
#include "support/contains.hpp"

BOOST_AUTO_TEST_SUITE(forged_senders)

namespace {

using namespace std::chrono_literals;
using troupe::node_id;
using troupe::gate::introduced_nodes;
using troupe::test::contains;
using troupe::test::liar;
using troupe::test::own_cluster;

constexpr auto deadline = 20s;

struct two_friends {
  own_cluster mine;
  troupe::node a{mine.settings_of("a")};
  troupe::node b{mine.settings_of("b")};

  two_friends() { b.join("127.0.0.1", a.port()); }
};

troupe::hello greeting_of(const std::string& name, node_id id) {
  troupe::hello result;
  result.name = name;
  result.id = id;
  result.host = "127.0.0.1";
  result.port = 1;
  result.protocol = troupe::protocol_version;
  return result;
}

}  // namespace

// TS-12. Before, any node could say farewell for another one, and all others took it for gone.
BOOST_FIXTURE_TEST_CASE(a_farewell_of_another_node_changes_nothing, two_friends) {
  liar mallory(mine.kit("mallory"));
  caf::scoped_actor self{mallory.system};
  const auto gateway = mallory.gateway_at(a.port());
  const auto b_id = b.status().self.id;
  const auto refusals = [&] {  // the node answers, so it has read all that came before
    std::uint64_t count = 0;
    self->request(gateway, deadline, troupe::support::status_atom::value)
      .receive([&](const troupe::node_status& now) { count = now.requests_refused; },
               [](const caf::error& problem) { BOOST_FAIL(caf::to_string(problem)); });
    return count;
  };
  self->send(gateway, troupe::farewell{b_id, "forged"});
  BOOST_TEST(refusals() == 1U);
  // The node reads many of them before it looks at the first one. None is overlooked.
  for (int i = 0; i < 99; ++i) self->send(gateway, troupe::farewell{b_id, "forged"});
  BOOST_TEST(refusals() == 100U);
  const auto refusal_of = [&](auto&&... message) {
    std::string text = "taken";
    self->request(gateway, deadline, std::forward<decltype(message)>(message)...)
      .receive([](const caf::message&) {}, [&](const caf::error& problem) { text = troupe::to_exception(problem).what(); });
    return text;
  };
  const auto own = caf::actor_cast<caf::strong_actor_ptr>(gateway);
  for (const auto* name : {"b", "mallory"}) {
    const auto text = refusal_of(greeting_of(name, b_id), own);
    BOOST_TEST(contains(text, "from another node"), text);
  }
  BOOST_TEST(contains(refusal_of(troupe::heartbeat{b_id, 1}), "from another node"));
  BOOST_TEST(contains(refusal_of(troupe::heartbeat{node_id{12345}, 1}), "has not introduced itself yet"));
  troupe::call_request call;
  call.what = troupe::requests::function{"anything"};
  call.payload.message.node = b_id;
  BOOST_TEST(contains(refusal_of(call), "from another node"));
  BOOST_TEST(refusals() >= 104U);
  BOOST_TEST(a.peers() == std::vector<std::string>{"b"}, boost::test_tools::per_element());
  BOOST_TEST(a.peer("b").status().self.name == "b");
}

// Before, heartbeats and calls for the node that greets went to the third one in this node's name.
BOOST_FIXTURE_TEST_CASE(nobody_greets_with_the_gateway_of_another_node, two_friends) {
  liar mallory(mine.kit("mallory"));
  caf::scoped_actor self{mallory.system};
  const auto gateway = mallory.gateway_at(a.port());
  const auto others = caf::actor_cast<caf::strong_actor_ptr>(mallory.gateway_at(b.port()));
  for (const auto& each : {caf::actor_cast<caf::strong_actor_ptr>(gateway), others}) {
    std::string text = "taken";
    self->request(gateway, deadline, greeting_of("mallory", node_id{4711}), each)
      .receive([](const caf::message&) {}, [&](const caf::error& problem) { text = troupe::to_exception(problem).what(); });
    BOOST_TEST(contains(text, "names as its gateway an actor of another node"), text);
  }
  BOOST_TEST(a.peers() == std::vector<std::string>{"b"}, boost::test_tools::per_element());
}

// BR-9. CAF takes an answer from anybody who knows or guesses the number of the question.
BOOST_FIXTURE_TEST_CASE(nobody_answers_for_another_node, two_friends) {
  std::promise<void> begun;
  std::promise<void> may_end;
  b.functions().add("slow", [&](troupe::call_arguments&) -> troupe::call_reply {
    begun.set_value();
    may_end.get_future().wait();
    return {{}, {{"answer", std::string("of b")}}};
  });
  auto answer = a.peer("b").call("slow");
  begun.get_future().wait();
  {
    liar mallory(mine.kit("mallory"));
    caf::scoped_actor self{mallory.system};
    const auto gateway = mallory.gateway_at(a.port());
    self->monitor(gateway);
    troupe::call_result forged;
    forged.values["answer"] = std::string("of mallory");
    for (std::uint64_t number = 1; number < 10'000; ++number)
      caf::actor_cast<caf::strong_actor_ptr>(gateway)->enqueue(
        caf::make_mailbox_element(caf::actor_cast<caf::strong_actor_ptr>(self), caf::make_message_id(number).response_id(), {},
                                  forged),
        nullptr);
    bool ended = false;
    self->receive([&](const caf::down_msg&) { ended = true; },
                  caf::after(deadline) >> [] { BOOST_TEST_MESSAGE("the connection goes on"); });
    BOOST_TEST(ended);
  }
  may_end.set_value();
  BOOST_TEST(troupe::get<std::string>(answer.get().values, "answer") == "of b");
}

// BR-6. CAF hands on whatever comes for the number of an actor, and a message can end an actor.
BOOST_FIXTURE_TEST_CASE(nobody_ends_the_actors_of_another_node, two_friends) {
  const auto own = a.status().connections_refused;
  const auto attack = [&](auto&& send) {
    liar mallory(mine.kit("mallory"));
    caf::scoped_actor self{mallory.system};
    const auto gateway = mallory.gateway_at(a.port());
    self->monitor(gateway);
    send(self, gateway);
    bool ended = false;
    self->receive([&](const caf::down_msg&) { ended = true; },
                  caf::after(deadline) >> [] { BOOST_TEST_MESSAGE("the connection goes on"); });
    BOOST_TEST(ended);
    BOOST_TEST(a.peer("b").status().self.name == "b");
    BOOST_TEST(b.peer("a").status().self.name == "a");
  };
  using self_t = caf::scoped_actor;
  attack([](self_t& self, const caf::actor& gateway) { self->send_exit(gateway, caf::exit_reason::kill); });
  attack([](self_t& self, const caf::actor& gateway) { self->send_exit(gateway, caf::exit_reason::user_shutdown); });
  attack([](self_t& self, const caf::actor& gateway) { self->send(gateway, troupe::support::blocked_atom::value); });
  attack([](self_t& self, const caf::actor& gateway) { self->send(gateway, troupe::support::tick_atom::value); });
  BOOST_TEST(a.status().connections_refused == own + 4);
}

// IO-3. Before, the running node was unknown to the other one from that greeting until its next heartbeat.
BOOST_AUTO_TEST_CASE(a_second_process_with_the_kit_of_a_running_node_takes_nothing_from_it) {
  const own_cluster mine;
  auto of_a = mine.settings_of("a");
  auto of_b = mine.settings_of("b");
  for (auto* each : {&of_a, &of_b}) each->heartbeat = 60s;  // none comes before the last call
  troupe::node a{of_a};
  a.functions().add("one", [](troupe::call_arguments&) { return troupe::call_reply{{}, {{"value", std::int64_t{1}}}}; });
  troupe::node b{of_b};
  b.join("127.0.0.1", a.port());
  b.peer("a").call("one").get();

  liar second(of_b.certificates);
  caf::scoped_actor self{second.system};
  std::string refusal;
  auto greeting = greeting_of("b", node_id{4242});
  greeting.port = 2;
  self->request(second.gateway_at(a.port()), deadline, greeting, caf::actor_cast<caf::strong_actor_ptr>(self))
    .receive([](const troupe::welcome&) { BOOST_FAIL("two nodes have one name"); },
             [&](const caf::error& problem) { refusal = troupe::to_exception(problem).what(); });
  BOOST_TEST(contains(refusal, "the name 'b' is taken"));
  BOOST_TEST(troupe::get<std::int64_t>(b.peer("a").call("one").get().values, "value") == 1);
}

// IO-2. Before, a node that drew one id after another left as many bytes as it liked: each id had the limit of a sender.
BOOST_AUTO_TEST_CASE(a_node_that_says_another_id_leaves_no_tensors_of_the_first_one) {
  const own_cluster mine;
  troupe::arriving_tensors* arriving = nullptr;
  auto options = mine.settings_of("a");
  options.configure = [&](caf::actor_system_config& config) {
    arriving = &dynamic_cast<troupe::tensor_receiver&>(config).arriving();
  };
  const troupe::node a(options);
  liar mallory(mine.kit("mallory"));
  caf::scoped_actor self{mallory.system};
  const auto gateway = mallory.gateway_at(a.port());
  const auto answer = [&](auto&&... message) {
    std::string text = "taken";
    self->request(gateway, deadline, std::forward<decltype(message)>(message)...)
      .receive([](std::int64_t) {}, [&](const caf::error& problem) { text = troupe::to_exception(problem).what(); });
    return text;
  };
  const auto page = troupe::arriving_tensors::least_bytes;
  for (const auto id : {node_id{1001}, node_id{1002}}) {
    auto greeting = greeting_of("mallory", id);
    ++greeting.protocol;  // the node refuses it
    BOOST_TEST(contains(answer(greeting, caf::actor_cast<caf::strong_actor_ptr>(self)), "version"));
    BOOST_TEST(arriving->bytes() == 0U);
    const auto elements = at::zeros({static_cast<std::int64_t>(page)}, at::kByte);
    BOOST_TEST(answer(troupe::tensor_piece{id, 1, 2 * page, 0, elements}) == "taken");
    BOOST_TEST(arriving->bytes() == page);
  }
}

BOOST_AUTO_TEST_CASE(an_id_belongs_to_one_name_and_a_name_has_its_last_id) {  // IO-1, IO-2
  std::vector<node_id> given_up;
  introduced_nodes all([&](node_id id) { given_up.push_back(id); });
  const troupe::certificates::identity a{"mine", "a", "member"};
  const troupe::certificates::identity b{"mine", "b", "reader"};
  BOOST_TEST(all.introduce(a, node_id{1}));
  BOOST_TEST(all.find(node_id{1})->node == "a");
  BOOST_TEST(!all.introduce(b, node_id{1}));
  BOOST_TEST(all.introduce(b, node_id{2}));
  BOOST_TEST(all.find(node_id{2})->role == "reader");
  BOOST_TEST(all.introduce(a, node_id{3}));  // started again
  BOOST_TEST(all.find(node_id{3})->node == "a");
  BOOST_TEST(!all.find(node_id{1}).has_value());
  BOOST_TEST(all.introduce(b, node_id{1}));
  BOOST_TEST(all.introduce(b, node_id{1}));
  BOOST_TEST((given_up == std::vector{node_id{1}, node_id{2}}));
}

BOOST_AUTO_TEST_CASE(a_greeting_takes_no_id_from_a_node_that_is_a_member) {  // IO-3
  std::vector<node_id> given_up;
  introduced_nodes all([&](node_id id) { given_up.push_back(id); });
  const troupe::certificates::identity a{"mine", "a", "member"};
  const troupe::certificates::identity b{"mine", "b", "reader"};
  all.introduce(a, node_id{1});
  BOOST_TEST(all.accept(node_id{1}));
  BOOST_TEST(all.introduce(a, node_id{2}));  // a second process
  BOOST_TEST(all.introduce(a, node_id{3}));
  BOOST_TEST((given_up == std::vector{node_id{2}}));
  BOOST_TEST(all.find(node_id{1})->node == "a");
  BOOST_TEST(all.find(node_id{3})->node == "a");
  BOOST_TEST((all.find("a") == node_id{1}));
  BOOST_TEST(!all.introduce(b, node_id{1}));
  BOOST_TEST(!all.introduce(b, node_id{3}));
  BOOST_TEST(!all.accept(node_id{2}));
  BOOST_TEST(all.accept(node_id{3}));  // the first process has ended
  BOOST_TEST((given_up == std::vector{node_id{2}, node_id{1}}));
  BOOST_TEST(!all.find(node_id{1}).has_value());
  BOOST_TEST((all.find("a") == node_id{3}));
  BOOST_TEST(!all.accept(node_id{4}));  // nobody's
  BOOST_TEST(!all.find(node_id{4}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
