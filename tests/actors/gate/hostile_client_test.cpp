// SPDX-License-Identifier: BSD-3-Clause
// A stranger and a node that lies play what no node would send. The other nodes go on as if nothing had come.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/behavior.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/send.hpp>

#include <troupe/actors/network/broker_notes.hpp>
#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/troupe.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/loopback_nodes.hpp"
#include "support/hostile_client.hpp"

BOOST_AUTO_TEST_SUITE(hostile_clients)

namespace {

using namespace troupe;

/// TROUPE_HOSTILE_INPUTS plays another number of inputs than the 20,000 of each run of the tests.
std::uint64_t count_of_inputs() {
  const auto* text = std::getenv("TROUPE_HOSTILE_INPUTS");
  return text == nullptr ? 20'000 : std::stoull(text);
}

settings settings_of(const std::string& name, const test::own_cluster& mine) {
  auto result = mine.settings_of(name);
  result.log_level = severity::off;
  result.prepare = [](node& here) {
    here.functions().add("echo", [](call_arguments& arguments) { return call_reply{arguments.tensors}; });
  };
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(inputs_that_no_node_sends_end_no_node_and_disturb_no_peer) {
  const test::own_cluster mine;
  node victim(settings_of("victim", mine));
  node peer(settings_of("peer", mine));
  peer.join("127.0.0.1", victim.port());
  int lost = 0;
  peer.on_peer_down([&](const std::string& name, const std::string&) { lost += name == "victim" ? 1 : 0; });
  const auto asks = [&] {
    return peer.peer("victim").call("echo", {at::ones({4})}).get().tensor(0).sum().item<float>() == 4.0F;
  };
  BOOST_TEST_REQUIRE(asks());
  test::hostile_client stranger("127.0.0.1", victim.port(), mine.kit("mallory"), 1);
  const auto all = count_of_inputs();
  constexpr std::uint64_t parts = 10;
  std::uint64_t resident = 0;
  for (std::uint64_t part = 0; part < parts; ++part) {
    stranger.play(all / parts);
    BOOST_TEST(asks());
    if (part == 0) resident = support::resident_bytes();
  }
  BOOST_TEST(stranger.messages() >= all / 2);
  BOOST_TEST(stranger.connections() >= all / 64);
  BOOST_TEST(lost == 0);
  BOOST_TEST(victim.peer("peer").status().self.name == "peer");
  const auto status = victim.status();
  BOOST_TEST(status.connections_refused > 0U);
  BOOST_TEST(status.requests_refused > 0U);
  const auto grown = static_cast<double>(support::resident_bytes()) - static_cast<double>(resident);
  BOOST_TEST(grown < 64e6, "the process grew by " << grown << " bytes");
}

// CAF takes note of each actor of which a message says that it is from it.
BOOST_AUTO_TEST_CASE(a_peer_that_has_actors_without_end_loses_its_connection) {  // TS-13, BN-1
  const test::own_cluster mine;
  node victim(settings_of("victim", mine));
  const auto target = victim.system().spawn([]() -> caf::behavior { return {[](std::int32_t) {}}; });
  victim.system().registry().put(target.id(), caf::actor_cast<caf::strong_actor_ptr>(target));
  const std::string types = "@<>+@i32";
  const auto payload = std::string(3, '\0') + static_cast<char>(types.size()) + types + std::string(4, '\0');
  std::string bytes = test::hostile_client::handshake();
  for (std::uint64_t actor = 1; actor <= network::broker_notes::most_actors + 2; ++actor) {
    network::message_head head;
    head.operation = static_cast<std::uint8_t>(caf::io::basp::message_type::direct_message);
    head.payload = static_cast<std::uint32_t>(payload.size());
    head.source = actor;
    head.target = target.id();
    bytes.resize(bytes.size() + network::message_head::bytes);
    head.write(bytes.data() + bytes.size() - network::message_head::bytes);
    bytes += payload;
  }
  test::hostile_client stranger("127.0.0.1", victim.port(), mine.kit("mallory"), 1);
  BOOST_TEST(stranger.is_closed_after(bytes, true));
  BOOST_TEST(victim.status().connections_refused == 1U);
  caf::anon_send_exit(target, caf::exit_reason::user_shutdown);
}

// Elements trail pieces of tensors alone, so that CAF never reads a message whose end it does not know.
BOOST_AUTO_TEST_CASE(elements_that_trail_another_message_end_its_connection) {  // PM-3, TS-14
  const test::own_cluster mine;
  node victim(settings_of("victim", mine));
  const std::string types = "@<>+@i32";
  const auto payload = std::string(3, '\0') + static_cast<char>(types.size()) + types + std::string(4, '\0');
  network::message_head head;
  head.operation = static_cast<std::uint8_t>(caf::io::basp::message_type::direct_message);
  head.payload = static_cast<std::uint32_t>(payload.size());
  head.source = 1;
  head.target = 1'000'000;
  const auto message = [&](std::uint8_t note) {
    head.note = note;
    std::string bytes(network::message_head::bytes, '\0');
    head.write(bytes.data());
    return bytes + payload;
  };
  test::hostile_client stranger("127.0.0.1", victim.port(), mine.kit("mallory"), 1);
  const auto first = test::hostile_client::handshake() + message(0);  // this message may come
  BOOST_TEST(stranger.is_closed_after(first + message(network::message_head::has_trailing), true));
  BOOST_TEST(victim.status().connections_refused == 1U);
}

// Before, each of these messages of a node with a certificate ended all connections of the node, its process, or its network thread.
BOOST_AUTO_TEST_CASE(what_caf_can_not_read_ends_its_own_connection_alone) {  // BR-11, BR-12
  const test::own_cluster mine;
  node victim(settings_of("victim", mine));
  node peer(settings_of("peer", mine));
  peer.join("127.0.0.1", victim.port());
  int lost = 0;
  peer.on_peer_down([&](const std::string&, const std::string&) { ++lost; });
  const auto target = victim.system().spawn([]() -> caf::behavior { return {[](std::int32_t) {}}; });
  victim.system().registry().put(target.id(), caf::actor_cast<caf::strong_actor_ptr>(target));
  const auto handshake = test::hostile_client::handshake();
  const auto written = [&](auto value) {
    std::vector<char> bytes;
    caf::binary_serializer to(victim.system(), bytes);
    BOOST_REQUIRE(!to(value));
    return std::string(bytes.begin(), bytes.end());
  };
  const auto victim_node = written(victim.system().node());
  const auto message = [&](caf::io::basp::message_type kind, const std::string& payload, std::uint64_t source) {
    network::message_head head;
    head.operation = static_cast<std::uint8_t>(kind);
    head.payload = static_cast<std::uint32_t>(payload.size());
    head.source = source;
    head.target = kind == caf::io::basp::message_type::down_message ? 0 : target.id();
    std::string result(network::message_head::bytes, '\0');
    head.write(result.data());
    return result + payload;
  };
  const auto content = [](const std::string& types, const std::string& values) {
    return std::string(2, '\0') + static_cast<char>(types.size()) + types + values;
  };
  using kind = caf::io::basp::message_type;
  const std::string of_no_kind(1, '\xff');  // of the kinds of values that caf::config_value may have
  std::string deep;
  for (int i = 0; i < 30'000; ++i) deep += "\7\1";  // a list of one list of one list ...
  const auto down = [&](const std::string& types, const std::string& values) {
    const auto reason = '\1' + std::string(8, '\0') + content(types, values);
    const auto stranger_node = handshake.substr(network::message_head::bytes, network::message_outline::node_bytes);
    return message(kind::down_message, stranger_node + victim_node + reason, 1);
  };
  const auto direct = [&](const std::string& types, const std::string& values) {
    return message(kind::direct_message, '\0' + content(types, values), 1);
  };
  const auto link = written(caf::atom_value{caf::link_atom::value}) + written(caf::actor_cast<caf::strong_actor_ptr>(target));
  const auto question = content("@<>+@str", written(std::string("x")));
  const auto routed = message(kind::routed_message, victim_node + victim_node + '\0' + question, target.id());
  const auto id_of_uri = written(caf::atom("uri")) + std::string("\0\0\xff\xff\xff", 5);
  const auto uri = written(std::uint64_t{1}) + id_of_uri;
  const auto too_much = std::string("\xff\xff\xff\xff\xf", 5);
  const auto nothing = content("@<>+@u8+", "x");  // CAF passes over the last plus sign
  // CAF goes on in the middle of a message within a message that it can't read.
  const auto unreadable = content("@<>+troupe.call", static_cast<char>(id_of_uri.size()) + std::string(11, '\0') + id_of_uri);
  for (const auto& each :
       {down("@<>+@config_value", of_no_kind), down("@<>+@config_value", deep), down("@<>+settings", "\1\1x" + of_no_kind),
        down("@<>+std::vector<@config_value>", '\1' + of_no_kind), down("@<>+@strong_actor_ptr", uri),
        direct("@<>+@config_value", of_no_kind), direct("@<>+@message", content("@<>+@config_value", of_no_kind)),
        direct("@<>+@strong_actor_ptr", uri), direct("@<>+@downstream_msg", std::string(100, '\x9')),
        direct("@<>+@charbuf", too_much), direct("@<>+@atom+@strong_actor_ptr", link),
        direct("@<>+@atom+@strong_actor_ptr+", link), routed, down("@<>+@message+@node", nothing + id_of_uri),
        down("@<>+@message+@charbuf", nothing + too_much),
        down("@<>+@message+@u64+@u32+@node", unreadable + std::string(12, '\0') + written(caf::node_id{})),
        down("@<>+std::vector<troupe.call>+@node", '\0' + id_of_uri)}) {
    const auto before = victim.status().connections_refused;
    test::hostile_client stranger("127.0.0.1", victim.port(), mine.kit("mallory"), 1);
    BOOST_TEST(stranger.is_closed_after(handshake + each, true));
    BOOST_TEST(victim.status().connections_refused == before + 1);
    BOOST_TEST(peer.peer("victim").call("echo", {at::ones({4})}).get().tensor(0).sum().item<float>() == 4.0F);
    BOOST_TEST(lost == 0);
  }
  caf::anon_send_exit(target, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_SUITE_END()
