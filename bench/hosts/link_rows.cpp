// SPDX-License-Identifier: BSD-3-Clause
// Rows of two hosts and the link between them.
#include "rows.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

#include "host_part.hpp"

namespace troupe::bench {

namespace {

using hosts::testbed;
using std::chrono::seconds;

constexpr auto patience = seconds(300);
constexpr int port = 4001;
constexpr double missed_ms = 750;  // a node that is taken for unreachable has missed 3 heartbeats of 250 ms
constexpr const char* tensor_bytes = "16777216";

std::vector<std::string> driver_options(const std::string& join, const std::string& name = "a") {
  return node_options(name, 0, {join});
}

/// Bare TCP from the host h1 to the host h2.
std::map<std::string, double> floor_between(const testbed& all, const std::string& bytes, const std::string& answer, int runs) {
  host_part echo(all["h2"], "echo", {}, {{"listen", all["h2"].ipv4()}});
  const auto echo_port = std::to_string(echo.ready());
  host_part floor(
    all["h1"], "floor", {},
    {{"address", all["h2"].ipv4()}, {"port", echo_port}, {"runs", std::to_string(runs)}, {"bytes", bytes}, {"answer", answer}});
  return floor.figures(patience);
}

/// Tensors of 16 MiB to the node of another host, two under way at a time: the next one is on the link while the last one is
/// answered. The floor is one TCP connection with as many bytes.
hosts_row bulk(const std::string& name, const std::string& rate, double mbit) {
  const auto measure = [=](const hosts_effort& effort) {
    testbed all({"h1", "h2"});
    for (const auto* each : {"h1", "h2"}) all.limit_rate(each, rate);
    const auto floor = floor_between(all, tensor_bytes, "8", effort.quick ? 1 : 6).at("mbit");
    host_part node(all["h2"], "node", node_options("b", port), {});
    node.ready();
    host_part driver(all["h1"], "bulk", driver_options("h2:4001"),
                     {{"in_flight", "2"}, {"seconds", effort.quick ? "0.5" : "10"}});
    const auto found = driver.figures(patience).at("mbit");
    return hosts_figures{{0, found, floor}, found / mbit, "bare TCP " + short_number(floor / mbit)};
  };
  return {.name = name, .unit = "Mbit/s", .bar = 0.9, .measure = measure};
}

/// Bytes of bare TCP both ways at once, by two connections: the slower way, in megabits per second.
double floor_both_ways(const testbed& all, int runs) {
  host_part echoes[] = {{all["h2"], "echo", {}, {{"listen", all["h2"].ipv4()}}},
                        {all["h1"], "echo", {}, {{"listen", all["h1"].ipv4()}}}};
  const auto floor_to = [&](const char* from, const char* to, host_part& echo) {
    return host_part(all[from], "floor", {},
                     {{"address", all[to].ipv4()},
                      {"port", std::to_string(echo.ready())},
                      {"runs", std::to_string(runs)},
                      {"bytes", tensor_bytes},
                      {"answer", "8"}});
  };
  auto there = floor_to("h1", "h2", echoes[0]);
  auto back = floor_to("h2", "h1", echoes[1]);
  return std::min(there.figures(patience).at("mbit"), back.figures(patience).at("mbit"));
}

/// Tensors of 16 MiB both ways at once, four each way. The slower way counts.
hosts_row bulk_both_ways() {
  const auto measure = [](const hosts_effort& effort) {
    constexpr double mbit = 1000;
    testbed all({"h1", "h2"});
    for (const auto* each : {"h1", "h2"}) all.limit_rate(each, "1gbit");
    const auto floor = floor_both_ways(all, effort.quick ? 1 : 20);
    host_part node(all["h2"], "node", node_options("b", port), {});
    node.ready();
    host_part driver(all["h1"], "late", driver_options("h2:4001"),
                     {{"what", "heartbeat"}, {"load", "both_ways"}, {"count", effort.quick ? "10" : "300"}});
    const auto found = driver.figures(patience);
    const auto [slower, faster] = std::minmax(found.at("mbit"), found.at("mbit_back"));
    return hosts_figures{{0, slower, floor},
                         slower / mbit,
                         "the faster way " + short_number(faster) + "; heartbeats: median " +
                           short_number(found.at("us") / 1e3) + " ms, 99th percentile " + short_number(found.at("late") / 1e3)};
  };
  return {.name = "bulk_both_ways", .unit = "Mbit/s", .bar = 0.7, .measure = measure};
}

/// The column of peers has the same tensors through the same relay without a delay.
hosts_row bulk_with_delay() {
  const auto measure = [](const hosts_effort& effort) {
    constexpr int each_way_ms = 25;
    testbed all({"h1", "h2", "relay"});
    all.cut("h1", "h2");  // so that everything passes through the relays
    host_part node(all["h2"], "node", node_options("b", port), {});
    node.ready();
    std::vector<double> rates[2];
    int runs = 0;
    for (int turn = 0; turn < (effort.quick ? 1 : 3); ++turn)
      for (const bool is_delayed : {false, true}) {
        host_part relay(all["relay"], "relay", {},
                        {{"listen", all["relay"].ipv4()},
                         {"to", all["h2"].ipv4()},
                         {"port", std::to_string(port)},
                         {"ms", std::to_string(is_delayed ? each_way_ms : 0)}});
        const auto at = "relay:" + std::to_string(relay.ready());
        host_part driver(all["h1"], "bulk", driver_options(at, "a" + std::to_string(++runs)),
                         {{"in_flight", "8"}, {"seconds", effort.quick ? "0.5" : "5"}});
        const auto found = driver.figures(patience);
        if (is_delayed && found.at("trip_ms") < 2 * each_way_ms)
          throw std::runtime_error("expected round trips of 50 ms, but one took " + short_number(found.at("trip_ms")) + " ms");
        rates[is_delayed ? 1 : 0].push_back(found.at("mbit"));
      }
    const auto direct = middle(rates[0]);
    const auto delayed = middle(rates[1]);
    return hosts_figures{{direct, delayed, 0}, delayed / direct};
  };
  return {.name = "bulk_50ms", .unit = "Mbit/s", .bar = 0.5, .measure = measure};
}

/// Floor and troupe take turns, each with processes that exist during its turns alone.
hosts_row small_call() {
  const auto measure = [](const hosts_effort& effort) {
    const testbed all({"h1", "h2"});
    std::vector<double> floors;
    std::vector<double> calls;
    for (int turn = 0; turn < (effort.quick ? 1 : 5); ++turn) {
      floors.push_back(floor_between(all, "200", "200", effort.quick ? 20 : 3000).at("us"));
      host_part node(all["h2"], "node", node_options("b", port), {});
      node.ready();
      host_part driver(all["h1"], "calls", driver_options("h2:4001"), {{"count", effort.quick ? "20" : "3000"}});
      calls.push_back(driver.figures(patience).at("us"));
    }
    const results value{0, middle(calls), middle(floors)};
    return hosts_figures{value, value.troupe / value.floor};
  };
  return {.name = "small_call_hosts", .unit = "us", .bar = 4, .at_most = true, .measure = measure};
}

hosts_row heartbeat_on_a_full_link() {
  const auto measure = [](const hosts_effort& effort) {
    testbed all({"h1", "h2"});
    for (const auto* each : {"h1", "h2"}) all.limit_rate(each, "1gbit");
    host_part node(all["h2"], "node", node_options("b", port), {});
    node.ready();
    host_part driver(all["h1"], "late", driver_options("h2:4001"),
                     {{"what", "heartbeat"}, {"load", "there"}, {"count", effort.quick ? "10" : "500"}});
    const auto found = driver.figures(patience);
    const auto late = found.at("late") / 1e3;
    const auto downs = static_cast<int>(found.at("downs"));
    return hosts_figures{{0, late, 0},
                         downs > 0 ? std::max(late, missed_ms) : late,
                         "median " + short_number(found.at("us") / 1e3) + " ms; the link carried " +
                           short_number(found.at("mbit")) + " Mbit/s of tensors; the node was unreachable " +
                           std::to_string(downs) + " times"};
  };
  return {.name = "heartbeat_late_link", .unit = "ms", .bar = 100, .at_most = true, .measure = measure};
}

/// The growth of the driver's process and of the node's, whichever is larger, in send limits.
hosts_row slow_peer() {
  const auto measure = [](const hosts_effort& effort) {
    constexpr double send_limit_mib = 256;
    const testbed all({"h1", "h2"});
    host_part node(all["h2"], "node", node_options("b", port), {});
    node.ready();
    host_part driver(all["h1"], "flood", driver_options("h2:4001"), {{"count", effort.quick ? "300" : "10000"}, {"ms", "4"}});
    const auto found = driver.figures(patience);
    const auto here = found.at("here_mib");
    const auto there = found.at("there_mib");
    const auto most = std::max(here, there);
    return hosts_figures{
      {0, most, 0}, most / send_limit_mib, "caller " + short_number(here) + " MiB, slow node " + short_number(there) + " MiB"};
  };
  return {.name = "slow_peer", .unit = "MiB more", .bar = 2, .at_most = true, .measure = measure};
}

}  // namespace

std::vector<hosts_row> link_rows() {
  return {bulk("bulk_1gbit", "1gbit", 1000),
          bulk("bulk_100mbit", "100mbit", 100),
          bulk_both_ways(),
          bulk_with_delay(),
          small_call(),
          heartbeat_on_a_full_link(),
          slow_peer()};
}

}  // namespace troupe::bench
