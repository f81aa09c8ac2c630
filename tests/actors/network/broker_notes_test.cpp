// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/broker_notes.hpp>

#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/atom.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/node_id.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/system_messages.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>

#include "actors/network/posted_work.hpp"

BOOST_AUTO_TEST_SUITE(notes_of_the_broker)

namespace {

using troupe::network::broker_notes;

caf::node_id node_of(std::uint32_t process) {
  caf::node_id::default_data::host_id_type host{};
  host.fill(1);
  return caf::make_node_id(process, host);
}

/// CAF's broker of messages between nodes, with a connection to node 1 on which nothing comes.
struct broker_of_caf {
  troupe::nodes::system_config config{troupe::settings{}};
  caf::actor_system system{config};
  caf::actor held = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  caf::io::basp_broker& broker = dynamic_cast<caf::io::basp_broker&>(*caf::actor_cast<caf::abstract_actor*>(held));
  caf::io::connection_handle by = caf::io::connection_handle::from_int(1'000'000);
  caf::node_id connected = node_of(1);

  broker_of_caf() {
    run([this] { broker.instance.tbl().add_direct(by, connected); });
  }
  ~broker_of_caf() {
    run([this] {
      broker.proxies().clear();
      broker.instance.tbl().erase_direct(by);
    });
  }

  /// Runs the work in the thread that the broker has.
  void run(const std::function<void()>& work) {
    std::promise<void> done;
    system.middleman().backend().post([&] {
      work();
      done.set_value();
    });
    BOOST_REQUIRE((done.get_future().wait_for(troupe::test::long_enough) == std::future_status::ready));
  }
  /// What CAF does when it first reads of an actor of the node, in a message of node 1.
  void meet(std::uint32_t process) {
    const auto node = node_of(process);
    broker.set_last_hop(&connected);
    broker.proxies().get_or_put(node, 1);
    broker.set_last_hop(nullptr);
    askers.push_back(system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; }));
    broker.spawn_servers.emplace(node, askers.back());
  }
  /// The same, when so many of its actors are named.
  void meet_actors(std::uint32_t process, std::uint64_t first, std::uint64_t last) {
    broker.set_last_hop(&connected);
    for (auto actor = first; actor <= last; ++actor) broker.proxies().get_or_put(node_of(process), actor);
    broker.set_last_hop(nullptr);
  }

  std::vector<caf::actor> askers;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_node_has_a_bounded_number_of_actors) {  // BN-1
  broker_notes notes;
  BOOST_TEST(notes.count({}, broker_notes::most_actors, 0) == "");
  BOOST_TEST(notes.count({}, broker_notes::most_actors + 1, 0) == "messages of more than 131072 actors");
}

BOOST_AUTO_TEST_CASE(a_connection_names_a_bounded_number_of_strangers) {  // BN-2
  broker_notes notes;
  for (std::uint32_t i = 1; i <= broker_notes::most_strangers; ++i)
    BOOST_TEST_REQUIRE(notes.count({{node_of(i), 1}}, 0, 0) == "");
  BOOST_TEST(notes.count({{node_of(1), 1}, {node_of(7), 1}}, 0, 0) == "");  // once more
  BOOST_TEST(notes.count({{node_of(broker_notes::most_strangers + 1), 1}}, 0, 0) ==
             "the names of more than 1024 nodes that are not connected with this one");
}

BOOST_FIXTURE_TEST_CASE(nodes_that_are_not_connected_are_forgotten, broker_of_caf) {  // BN-2
  constexpr auto most = broker_notes::most_strangers;
  const auto known = [&](std::uint32_t process) { return broker.proxies().count_proxies(node_of(process)); };
  run([&] {
    meet(1);
    for (std::uint32_t process = 2; process < most + 2; ++process) meet(process);
    BOOST_TEST(!broker.instance.tbl().indirect_.empty());
    broker_notes notes;
    BOOST_TEST(notes.read(broker, by, 0) == "");
    BOOST_TEST(broker.instance.tbl().indirect_.empty());
    for (const std::uint32_t process : {std::uint32_t{1}, std::uint32_t{2}, static_cast<std::uint32_t>(most) + 1})
      BOOST_TEST(known(process) == 1U, process);
    meet(most + 2);
    BOOST_TEST(broker_notes().read(broker, by, 0) == "");  // of another connection: this one has named a single node
    for (std::uint32_t process = 2; process < most + 3; ++process) BOOST_TEST_REQUIRE(known(process) == 0U);
    BOOST_TEST(known(1) == 1U);
    meet(most + 3);
    BOOST_TEST(notes.read(broker, by, 0) == "the names of more than 1024 nodes that are not connected with this one");
  });
}

BOOST_AUTO_TEST_CASE(nodes_that_are_not_connected_have_a_bounded_number_of_actors) {  // BN-1
  broker_notes notes;
  constexpr auto most = broker_notes::most_actors;
  BOOST_TEST(notes.count({{node_of(1), most - 1}}, 0, 0) == "");
  BOOST_TEST(notes.count({{node_of(1), most - 2}, {node_of(2), 2}}, 0, 0) == "");
  BOOST_TEST(notes.count({{node_of(2), 3}}, 0, 0) ==
             "messages that name more than 131072 actors of nodes that are not connected with this one");
}

BOOST_FIXTURE_TEST_CASE(actors_of_a_node_that_is_not_connected_count_over_messages, broker_of_caf) {  // BN-1
  run([&] {
    broker_notes notes;
    constexpr auto half = broker_notes::most_actors / 2;
    meet_actors(2, 1, half);
    BOOST_TEST(notes.read(broker, by, 0) == "");
    meet_actors(2, half + 1, 2 * half + 1);
    BOOST_TEST(notes.read(broker, by, 0).starts_with("messages that name more than"));
  });
}

BOOST_FIXTURE_TEST_CASE(actors_that_ask_for_a_service_end_at_once, broker_of_caf) {  // BN-3
  run([&] {
    for (const std::uint32_t process : {1U, 2U}) meet(process);
    BOOST_TEST(broker_notes().read(broker, by, 0) == "");
    BOOST_TEST(broker.spawn_servers.empty());
  });
  caf::scoped_actor self{system};
  for (const auto& each : askers) self->monitor(each);
  for (std::size_t i = 0; i < askers.size(); ++i)
    self->receive([](const caf::down_msg& ended) { BOOST_TEST((ended.reason == caf::exit_reason::kill)); },
                  caf::after(troupe::test::long_enough) >> [] { BOOST_ERROR("an actor that has asked still lives"); });
}

BOOST_AUTO_TEST_CASE(who_asks_reads_the_answers) {  // BN-4
  constexpr auto half = broker_notes::most_owed / 2;
  broker_notes notes;
  for (int i = 0; i < 10; ++i) {
    BOOST_TEST(notes.count({}, 0, half) == "");
    BOOST_TEST(notes.count({}, 0, half) == "");
    i % 2 == 0 ? notes.left(2 * half, false) : notes.left(1, true);
  }
  BOOST_TEST(notes.count({}, 0, 2 * half) == "");
  notes.left(half, false);
  BOOST_TEST(notes.count({}, 0, half) == "");
  BOOST_TEST(notes.count({}, 0, 1) == "questions whose answers it does not read");
}

BOOST_AUTO_TEST_SUITE_END()
