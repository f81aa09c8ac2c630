// SPDX-License-Identifier: BSD-3-Clause
#include "simulation/simulated_network.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

using namespace troupe::simulation;

namespace {

/// Three nodes, all of them connected, on a network that writes down what arrives.
struct small_network {
  event_queue clock;
  simulated_network network;
  std::vector<std::string> heard;

  explicit small_network(network_costs costs = {.latency_ns = 100}, std::uint64_t seed = 1) : network(clock, 3, costs, seed) {
    for (std::size_t a = 0; a < 3; ++a)
      for (std::size_t b = a + 1; b < 3; ++b) network.connect(a, b);
    network.on_lost = [this](std::size_t at, std::size_t other) {
      note(std::to_string(at) + " lost " + std::to_string(other));
    };
  }
  void note(const std::string& what) { heard.push_back(what + " @" + std::to_string(clock.now_ns())); }
  void send(std::size_t from, std::size_t to, const std::string& what, std::uint64_t bytes = 0) {
    network.send(from, to, bytes, [=, this] { note(what); });
  }
  void expect(const std::vector<std::string>& what) {
    BOOST_TEST(heard == what, boost::test_tools::per_element());
    heard.clear();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(simulated_network_between_nodes)

BOOST_AUTO_TEST_CASE(a_message_costs_latency_bandwidth_and_cpu) {  // NQ-1
  small_network all(
    {.latency_ns = 100, .bytes_per_second = 1e9, .send_ns = 10, .receive_ns = 20, .byte_ns = 0.5, .envelope_bytes = 4});
  all.send(0, 1, "first", 6);
  all.send(0, 1, "second", 6);
  all.clock.run_until(1000);
  // 15 ns CPU and 10 ns on the wire, 100 ns latency, 10 ns in, 25 ns CPU. The second waits for the sender's CPU and then for the receiver's.
  all.expect({"first @150", "second @175"});
  BOOST_TEST(all.network.counts(0).sent == 2u);
  BOOST_TEST(all.network.counts(0).bytes_sent == 20u);
  BOOST_TEST(all.network.counts(0).cpu_ns == 30);
  BOOST_TEST(all.network.counts(1).received == 2u);
  BOOST_TEST(all.network.counts(1).cpu_ns == 50);
  BOOST_TEST(all.network.counts(2).cpu_ns == 0);
}

BOOST_AUTO_TEST_CASE(messages_without_jitter_arrive_in_their_order_also_after_cuts) {
  small_network all;
  all.network.cut_way(0, 1);
  all.send(0, 1, "first");
  all.clock.run_until(150);
  all.send(0, 1, "second");
  all.clock.run_until(200);
  all.network.mend_way(0, 1);  // the first message, which was held, arrives at 300; the second one would arrive at 250
  all.clock.run_until(240);
  all.network.cut_way(0, 1);
  all.network.mend_way(0, 1);
  all.send(0, 1, "third");
  all.clock.run_until(1000);
  all.expect({"first @300", "second @300", "third @340"});
}

BOOST_AUTO_TEST_CASE(what_many_nodes_send_to_one_waits_for_the_interface_of_that_node) {
  small_network all({.bytes_per_second = 1e9});
  all.send(0, 2, "from 0", 1000);
  all.send(1, 2, "from 1", 1000);
  all.clock.run_until(10'000);
  all.expect({"from 0 @1000", "from 1 @2000"});
}

BOOST_AUTO_TEST_CASE(work_of_a_node_waits_for_its_cpu) {  // NQ-1
  small_network all;
  all.network.work(0, 50, [&] { all.note("a"); });
  all.network.work(0, 50, [&] { all.note("b"); });
  all.network.work(1, 60, [&] { all.note("c"); });
  all.network.compute(0, 80, [&] { all.note("d"); });
  all.network.compute(0, 80, [&] { all.note("e"); });
  all.clock.run_until(1000);
  all.expect({"a @50", "c @60", "d @80", "b @100", "e @160"});
}

BOOST_AUTO_TEST_CASE(nodes_that_share_cores_wait_for_each_other) {  // NQ-1
  small_network all({.cores = 2});
  for (const auto* name : {"a", "b", "c", "d"})
    all.network.work(static_cast<std::size_t>(name[0] - 'a') % 3, 50, [&all, name] { all.note(name); });
  all.clock.run_until(1000);
  all.expect({"a @50", "b @50", "c @100", "d @100"});
}

BOOST_AUTO_TEST_CASE(nothing_arrives_over_a_connection_that_has_ended) {  // NQ-2
  small_network all;
  all.send(0, 1, "lost");
  all.network.disconnect(0, 1);
  all.send(0, 1, "lost too");
  all.network.connect(0, 1);
  all.send(0, 1, "over the new one");
  all.clock.run_until(1000);
  all.expect({"0 lost 1 @0", "1 lost 0 @0", "over the new one @100"});
}

BOOST_AUTO_TEST_CASE(nothing_arrives_at_a_process_that_has_ended_and_its_timers_do_nothing) {  // NQ-2
  small_network all;
  all.send(0, 1, "lost");
  all.network.after(1, 50, [&] { all.note("timer"); });
  all.network.work(1, 50, [&] { all.note("work"); });
  all.network.end(1);
  all.network.start(1);
  all.network.connect(0, 1);
  all.send(0, 1, "to the new one");
  all.clock.run_until(1000);
  all.expect({"0 lost 1 @0", "2 lost 1 @0", "to the new one @100"});
}

BOOST_AUTO_TEST_CASE(what_is_cut_waits_or_is_lost) {  // NQ-2
  small_network all;
  all.network.cut_way(0, 1);
  all.send(0, 1, "late");
  all.send(1, 0, "the other way");
  all.clock.run_until(500);
  all.expect({"the other way @100"});
  all.network.mend_way(0, 1);
  all.clock.run_until(1000);
  all.expect({"late @600"});
  all.network.lose_what_is_cut();
  all.network.separate(1);
  all.send(0, 1, "lost");
  all.send(1, 2, "on one side");
  all.network.separate(0);
  all.clock.run_until(2000);
  all.expect({"on one side @1100"});
}

BOOST_AUTO_TEST_CASE(a_node_that_is_cut_off_does_not_hear_that_a_connection_ends) {
  small_network all;
  all.network.cut_way(1, 0);
  all.network.end(1);
  all.clock.run_until(10);
  all.expect({"2 lost 1 @0"});
}

BOOST_AUTO_TEST_CASE(a_frozen_node_does_all_later_in_order) {  // NQ-3
  small_network all;
  all.network.freeze(1);
  all.send(0, 1, "message");
  all.network.after(1, 150, [&] { all.note("timer"); });
  all.send(0, 2, "elsewhere");
  all.clock.run_until(1000);
  all.expect({"elsewhere @100"});
  all.network.thaw(1);
  all.clock.run_until(2000);
  all.expect({"message @1000", "timer @1000"});
}

BOOST_AUTO_TEST_CASE(a_slow_link_is_slow_for_its_two_nodes_only) {
  small_network all;
  all.network.slow(1, 0, 5);
  all.send(0, 1, "slow");
  all.send(0, 2, "fast");
  all.clock.run_until(1000);
  all.expect({"fast @100", "slow @500"});
  all.network.slow(0, 1, 1);
  all.send(0, 1, "fast again");
  all.clock.run_until(2000);
  all.expect({"fast again @1100"});
}

BOOST_AUTO_TEST_CASE(one_seed_gives_one_run) {  // NQ-4
  const auto run = [](std::uint64_t seed) {
    small_network all({.latency_ns = 100, .jitter_ns = 1000}, seed);
    all.network.lose_one_of(4);
    for (int i = 0; i < 100; ++i) all.send(0, 1, std::to_string(i));
    all.clock.run_until(10'000);
    return all.heard;
  };
  const auto first = run(1);
  BOOST_TEST(first.size() > 50u);
  BOOST_TEST(first.size() < 95u);
  BOOST_TEST((run(1) == first));
  BOOST_TEST((run(2) != first));
}

BOOST_AUTO_TEST_SUITE_END()
