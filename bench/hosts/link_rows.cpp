// SPDX-License-Identifier: BSD-3-Clause
// Rows of two hosts and the link between them.
#include "rows.hpp"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "../support/peers.hpp"
#include "../support/size_ladder.hpp"
#include "host_process.hpp"
#include "host_ways.hpp"
#include "processes.hpp"

namespace troupe::bench {

namespace {

using hosts::testbed;

constexpr double missed_ms = 750;  // a node that is taken for unreachable has missed 3 heartbeats of 250 ms
constexpr const char* tensor_bytes = "16777216";

/// A process that measures bare TCP to another process, which echoes on the host `to`.
host_process floor_to(const testbed& all, const char* from, const char* to, host_process& echo, const std::string& bytes,
                      const std::string& answer, int runs) {
  return {all[from],
          "floor",
          {},
          {{"address", all[to].ipv4()},
           {"port", std::to_string(echo.ready())},
           {"runs", std::to_string(runs)},
           {"bytes", bytes},
           {"answer", answer}}};
}

/// Bare TCP from the host h1 to the host h2.
figures_by_name floor_between(const testbed& all, const std::string& bytes, const std::string& answer, int runs) {
  host_process echo(all["h2"], "echo", {}, {{"listen", all["h2"].ipv4()}});
  return floor_to(all, "h1", "h2", echo, bytes, answer, runs).figures();
}

/// Tensors of 16 MiB to the node of another host, two under way at a time: the next one is on the link while the last one is
/// answered. The floor is one TCP connection with as many bytes.
row bulk(const std::string& rate, double mbit, bool quick) {
  testbed all({"h1", "h2"});
  limit_both(all, rate);
  const auto floor = floor_between(all, tensor_bytes, "8", quick ? 1 : 6).at("mbit");
  const auto found = figures_of_two(all, "bulk", {{"in_flight", "2"}, {"seconds", quick ? "0.5" : "7"}}).at("mbit");
  return {{0, found, floor}, found / mbit, "bare TCP " + short_number(floor / mbit)};
}

/// Bytes of bare TCP both ways at once, by two connections: the slower way, in megabits per second.
double floor_both_ways(const testbed& all, int runs) {
  host_process echoes[] = {{all["h2"], "echo", {}, {{"listen", all["h2"].ipv4()}}},
                           {all["h1"], "echo", {}, {{"listen", all["h1"].ipv4()}}}};
  auto there = floor_to(all, "h1", "h2", echoes[0], tensor_bytes, "8", runs);
  auto back = floor_to(all, "h2", "h1", echoes[1], tensor_bytes, "8", runs);
  return std::min(there.figures().at("mbit"), back.figures().at("mbit"));
}

/// Tensors of 16 MiB both ways at once, four each way. The slower way counts.
row bulk_both_ways(bool quick) {
  constexpr double mbit = 1000;
  testbed all({"h1", "h2"});
  limit_both(all, "1gbit");
  const auto floor = floor_both_ways(all, quick ? 1 : 20);
  const auto found =
    figures_of_two(all, "late", {{"what", "heartbeat"}, {"load", "both_ways"}, {"count", quick ? "10" : "300"}});
  const auto [slower, faster] = std::minmax(found.at("mbit"), found.at("mbit_back"));
  return {{0, slower, floor},
          slower / mbit,
          "the faster way " + short_number(faster) + "; heartbeats: median " + short_number(found.at("us") / 1e3) +
            " ms, 99th percentile " + short_number(found.at("late") / 1e3)};
}

/// The column of peers has the same tensors through the same relay without a delay.
row bulk_with_delay(bool quick) {
  constexpr int each_way_ms = 25;
  testbed all({"h1", "h2", "relay"});
  all.cut("h1", "h2");  // so that everything passes through the relays
  host_process node(all["h2"], "node", node_options("b", port_of_nodes), {});
  node.ready();
  std::vector<double> rates[2];
  int runs = 0;
  for (int turn = 0; turn < (quick ? 1 : 3); ++turn)
    for (const bool is_delayed : {false, true}) {
      host_process relay(all["relay"], "relay", {},
                         {{"listen", all["relay"].ipv4()},
                          {"to", all["h2"].ipv4()},
                          {"port", std::to_string(port_of_nodes)},
                          {"ms", std::to_string(is_delayed ? each_way_ms : 0)}});
      const auto at = "relay:" + std::to_string(relay.ready());
      host_process driver(all["h1"], "bulk", node_options("a" + std::to_string(++runs), 0, {at}),
                          {{"in_flight", "8"}, {"seconds", quick ? "0.5" : "4"}});
      const auto found = driver.figures();
      if (is_delayed && found.at("trip_ms") < 2 * each_way_ms)
        throw std::runtime_error("expected round trips of 50 ms, but one took " + short_number(found.at("trip_ms")) + " ms");
      rates[is_delayed ? 1 : 0].push_back(found.at("mbit"));
    }
  const auto direct = middle(rates[0]);
  const auto delayed = middle(rates[1]);
  return {{direct, delayed, 0}, delayed / direct};
}

/// Floor and troupe take turns, each with processes that exist during its turns alone.
row small_call(bool quick) {
  const testbed all({"h1", "h2"});
  std::vector<double> floors;
  std::vector<double> calls;
  for (int turn = 0; turn < (quick ? 1 : 5); ++turn) {
    floors.push_back(floor_between(all, "200", "200", quick ? 20 : 3000).at("us"));
    calls.push_back(figures_of_two(all, "calls", {{"count", quick ? "20" : "3000"}}).at("us"));
  }
  const results value{0, middle(calls), middle(floors)};
  return {value, value.troupe / value.floor};
}

/// Bytes to the other host and back by size: the least medians of the turns. For each size the ways take turns, and their
/// processes exist during their turns alone. CAF is left out where it takes several times as long as gRPC.
row size_ladder(bool quick) {
  constexpr std::int64_t largest_of_caf = std::int64_t{4} << 20;
  const testbed all({"h1", "h2"});
  const auto ways = plain_ways(all);
  std::vector<ladder_step> steps;
  for (const auto bytes : sizes_of_ladder(quick)) {
    const auto size = static_cast<std::int64_t>(bytes);
    const auto most = std::min<std::int64_t>(filling_bytes, 500 * (size + 1));
    const auto endless = std::numeric_limits<double>::infinity();
    ladder_step step{bytes, endless, endless};
    for (int turn = 0; turn < turns_of_ladder(bytes, quick); ++turn)
      for (const auto& each : ways) {
        if (each.as == role::floor || (each.name == way::of_caf().name && size > largest_of_caf && has_grpc())) continue;
        const auto us = each.figures({size}, quick ? 1'000 : most).at("us_" + std::to_string(size));
        auto& least = each.as == role::troupe ? step.troupe : step.peer;
        least = std::min(least, us);
      }
    steps.push_back(step);
  }
  return row_of_ladder(steps);
}

/// Small calls a second with 64 and 256 under way, the worse ratio. The ways take turns.
row calls_in_flight(bool quick) {
  const testbed all({"h1", "h2"});
  const auto numbers = quick ? std::vector<std::int64_t>{16} : std::vector<std::int64_t>{64, 256};
  std::map<std::int64_t, std::vector<double>> peer;
  std::map<std::int64_t, std::vector<double>> ours;
  for (int turn = 0; turn < (quick ? 1 : 5); ++turn)
    for (const auto& each : {way::of_caf(), way::of_troupe("", role::troupe, nullptr)}) {
      const auto found = each.figures(all, "rates", {{"at_once", list_of(numbers)}, {"count", quick ? "16" : "5000"}});
      for (const auto number : numbers)
        (each.as == role::peer ? peer : ours)[number].push_back(found.at("per_s_" + std::to_string(number)));
    }
  row worst{.ratio = std::numeric_limits<double>::infinity()};
  std::string text;
  for (const auto number : numbers) {
    const results value{middle(peer.at(number)), middle(ours.at(number)), 0};
    const auto ratio = value.troupe / value.peer;
    text += (text.empty() ? "" : ", ") + std::to_string(number) + " under way " + short_number(ratio);
    if (ratio < worst.ratio) worst = {.value = value, .ratio = ratio};
  }
  worst.note = text;
  return worst;
}

row heartbeat_on_a_full_link(bool quick) {
  testbed all({"h1", "h2"});
  limit_both(all, "1gbit");
  const auto found = figures_of_two(all, "late", {{"what", "heartbeat"}, {"load", "there"}, {"count", quick ? "10" : "500"}});
  const auto late = found.at("late") / 1e3;
  const auto downs = static_cast<int>(found.at("downs"));
  return {{0, late, 0},
          downs > 0 ? std::max(late, missed_ms) : late,
          "median " + short_number(found.at("us") / 1e3) + " ms; the link carried " + short_number(found.at("mbit")) +
            " Mbit/s of tensors; the node was unreachable " + std::to_string(downs) + " times"};
}

/// The growth of the driver's process and of the node's, whichever is larger, in send limits.
row slow_peer(bool quick) {
  constexpr double send_limit_mib = 256;
  const testbed all({"h1", "h2"});
  const auto found = figures_of_two(all, "flood", {{"count", quick ? "300" : "5000"}, {"ms", "4"}});
  const auto here = found.at("here_mib");
  const auto there = found.at("there_mib");
  const auto most = std::max(here, there);
  return {
    {0, most, 0}, most / send_limit_mib, "caller " + short_number(here) + " MiB, slow node " + short_number(there) + " MiB"};
}

}  // namespace

std::vector<row_definition> link_rows() {
  return {
    {"bulk_1gbit", "Mbit/s", at_least(0.9), "Large tensors over a link of 1 Gbit/s; ratio: by the rate of the link.",
     [](bool quick) { return bulk("1gbit", 1000, quick); }},
    {"bulk_100mbit", "Mbit/s", at_least(0.9), "Large tensors over a link of 100 Mbit/s; ratio: by the rate of the link.",
     [](bool quick) { return bulk("100mbit", 100, quick); }},
    {"bulk_both_ways", "Mbit/s", at_least(0.7),
     "Large tensors both ways over a link of 1 Gbit/s, the slower way; ratio: by the rate of the link.", bulk_both_ways},
    {"bulk_50ms", "Mbit/s", at_least(0.5), "Large tensors over a link with round trips of 50 ms; peer: without that delay.",
     bulk_with_delay},
    {"small_call_hosts", "us", at_most(4), "A small call between two hosts; ratio: by the floor.", small_call},
    {"size_ladder_hosts", "us", at_least(1.0),
     "A call with 64 B to 256 MiB to another host, at the worst size; peer: the best one of gRPC, CAF and TensorPipe.",
     size_ladder},
    {"calls_in_flight", "calls/s", at_least(1.0),
     "Small calls a second to another host, 64 and 256 under way, the worse one; peer: requests of CAF.", calls_in_flight},
    {"heartbeat_late_link", "ms", at_most(100),
     "99th percentile of a heartbeat's way while tensors fill a link of 1 Gbit/s; ratio in ms.", heartbeat_on_a_full_link},
    {"slow_peer", "MiB more", at_most(2),
     "Memory that grows while a node answers slowly; ratio: by the limit of what may wait.", slow_peer}};
}

}  // namespace troupe::bench
