// SPDX-License-Identifier: BSD-3-Clause
// A cluster in which some nodes use troupe's own network and others use CAF's.
#include <boost/test/unit_test.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <caf/actor_cast.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_behavior.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "support/recording_relay.hpp"

BOOST_AUTO_TEST_SUITE(networks)

namespace {

troupe::settings on(troupe::network_kind network, const char* name) {
  auto result = troupe::test::loopback_settings(name);
  result.network = network;
  result.insecure = true;  // a node of troupe's network does not refuse the other one
  return result;
}

/// Walks through the messages of a connection. Returns the elements that trail them, one after another.
std::string trailing_in(const std::string& sent) {
  using troupe::network::message_head;
  std::string result;
  for (std::size_t at = 0; sent.size() - at >= message_head::bytes;) {
    const auto head = message_head::read(sent.data() + at);
    const auto payload = sent.substr(at + message_head::bytes, head.payload);
    at = std::min(sent.size(), at + message_head::bytes + head.payload);
    if ((head.note & message_head::has_trailing) == 0) continue;
    const auto values = troupe::network::outline_of(payload, false)->values.substr(12);  // behind the lengths
    troupe::wire::TensorPiece piece;
    BOOST_REQUIRE(piece.ParseFromArray(values.data(), static_cast<int>(values.size())));
    result += sent.substr(at, piece.trailing());
    at = std::min(sent.size(), at + piece.trailing());
  }
  return result;
}

bool has_own_network(troupe::node& here) {
  return dynamic_cast<troupe::network::shared_multiplexer*>(&here.system().middleman().backend()) != nullptr;
}

}  // namespace

// TS-14: with certificates, the test of the relay could not read the bytes.
BOOST_AUTO_TEST_CASE(elements_of_large_tensors_trail_their_messages_between_two_nodes) {
  auto by_tcp = [](const char* name) {
    auto result = on(troupe::network_kind::troupe, name);
    result.shared_memory = false;
    return result;
  };
  troupe::node stage(by_tcp("stage"));
  stage.functions().add("double",
                        [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensor(0) * 2}}; });
  troupe::test::recording_relay relay(stage.port());
  const auto large = torch::rand({1 << 18});
  {
    troupe::node driver(by_tcp("driver"));
    driver.join("127.0.0.1", relay.port());
    for (int i = 0; i < 2; ++i) BOOST_TEST(at::equal(driver.peer("stage").call("double", {large}).get().tensor(0), large * 2));
  }
  const auto elements = trailing_in(relay.sent());
  const std::string once(static_cast<const char*>(large.const_data_ptr()), large.nbytes());
  BOOST_TEST((elements == once + once));
}

BOOST_AUTO_TEST_CASE(nodes_on_both_kinds_of_network_work_together) {
  troupe::node own(on(troupe::network_kind::troupe, "own"));
  troupe::node stock(on(troupe::network_kind::caf, "stock"));
  BOOST_TEST(has_own_network(own));
  BOOST_TEST(!has_own_network(stock));
  for (auto* each : {&own, &stock})
    each->functions().add("double",
                          [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensor(0) * 2}}; });
  own.join("127.0.0.1", stock.port());
  const auto small = torch::ones({3}, torch::requires_grad());
  const auto large = torch::ones({1 << 20}, torch::requires_grad());
  for (auto* caller : {&own, &stock}) {
    const auto callee = caller->peer(caller == &own ? "stock" : "own");
    troupe::context pass(*caller);
    auto loss = torch::zeros({});
    for (const auto& x : {small, large}) loss = loss + callee.call("double", {x}).get().tensor(0).square().sum();
    pass.backward({loss}).get();
    BOOST_TEST(at::equal(pass.gradient(small), torch::full({3}, 8)));
    BOOST_TEST(at::equal(pass.gradient(large), torch::full({1 << 20}, 8)));
  }
}

// CAF's network knows no fragments: a message to it leaves whole.
BOOST_AUTO_TEST_CASE(large_messages_reach_nodes_on_both_kinds_of_network) {
  using length_actor = caf::typed_actor<caf::replies_to<std::string>::with<std::uint64_t>>;
  troupe::node own(on(troupe::network_kind::troupe, "own"));
  troupe::node stock(on(troupe::network_kind::caf, "stock"));
  for (auto* each : {&own, &stock}) {
    const length_actor made = each->system().spawn(
      [] { return length_actor::behavior_type{[](const std::string& what) { return std::uint64_t{what.size()}; }}; });
    each->publish("length", caf::actor_cast<caf::strong_actor_ptr>(made));
  }
  own.join("127.0.0.1", stock.port());
  static constexpr std::uint64_t large = 3'000'000;
  for (auto* sender : {&own, &stock}) {
    caf::scoped_actor self{sender->system()};
    const auto to = caf::actor_cast<length_actor>(sender->peer(sender == &own ? "stock" : "own").actor("length"));
    self->request(to, std::chrono::seconds(20), std::string(large, 'x'))
      .receive([](std::uint64_t size) { BOOST_TEST(size == large); },
               [](const caf::error& why) { BOOST_ERROR(troupe::to_exception(why).what()); });
  }
}

// One thread makes the connections to all programs, so it may not wait for long for one that takes none. The system would wait for two minutes.
BOOST_AUTO_TEST_CASE(a_program_that_takes_no_connection_holds_up_the_others_for_seconds_only) {
  using troupe::support::owned_descriptor;
  troupe::node here(on(troupe::network_kind::troupe, "here"));
  const owned_descriptor silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  BOOST_REQUIRE(::bind(silent.get(), address, size) == 0 && ::listen(silent.get(), 0) == 0 &&
                ::getsockname(silent.get(), address, &size) == 0);
  std::vector<owned_descriptor>
    waiting;  // these fill the queue of the listening socket. The system drops the packets of further callers
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::connect(waiting.back().get(), address, size);
  }
  const auto begin = std::chrono::steady_clock::now();
  BOOST_TEST(!here.system().middleman().connect("127.0.0.1", ntohs(at.sin_port)));
  const auto took = std::chrono::steady_clock::now() - begin;
  BOOST_TEST((took > std::chrono::seconds(1)));  // it did wait
  BOOST_TEST((took < std::chrono::seconds(30)));
}

BOOST_AUTO_TEST_SUITE_END()
