// SPDX-License-Identifier: BSD-3-Clause
// Messages between hosts, and passes over several of them.
#include <list>

#include "host_ways.hpp"
#include "rows.hpp"

namespace troupe::bench {

namespace {

using hosts::testbed;

constexpr double least_of_full_link = 500;  // Mbit/s of 1,000

constexpr int turns_of(bool quick) { return quick ? 1 : 3; }

std::vector<std::int64_t> sizes(bool quick) {
  return quick ? std::vector<std::int64_t>{0, 1024}
               : std::vector<std::int64_t>{0, 256, 4'096, 65'536, 1 << 20, 16 << 20, 64 << 20};
}

/// A point whose figures are those of a process: `figure`, and "low" and "high" with the same ending.
point point_in(const figures_by_name& found, double x, const std::string& figure, const std::string& ending) {
  return {x, found.at(figure + ending), {found.at("low" + ending), found.at("high" + ending)}};
}

plot call_by_size_hosts(bool quick) {
  plot made{"Bytes to another host and back, by their number",
            "Lower is better. The hosts are network namespaces of this machine: the link is as fast as the machine. Bare TCP "
            "sends at least one byte.",
            {"size of the message", "bytes", true},
            {"time until the answer", "us", true}};
  const testbed all({"h1", "h2"});
  const kits proofs;
  for (const auto& each : ways(all, proofs)) {
    const auto found = each.figures(sizes(quick), quick ? 1'000 : 64 << 20);
    made.curves.push_back(curve_over(sizes(quick), each.name, each.as, [&](std::int64_t bytes) {
      return point_in(found, static_cast<double>(bytes), "us", "_" + std::to_string(bytes));
    }));
  }
  return made;
}

/// What some turns have found for the slow ones among messages: the middle one of the turns, and the range of them. `names`: of the
/// figures for one message of x.
curve curve_of_turns(const std::string& name, role as, const std::vector<figures_by_name>& turns,
                     const std::vector<std::pair<double, std::string>>& names, double unit) {
  curve made{name, as};
  for (const auto& [x, figure] : names) {
    std::vector<double> values;
    for (const auto& turn : turns) values.push_back(turn.at(figure) / unit);
    const auto value = middle(values);
    made.points.push_back({x, value, spread_of(values, value)});
  }
  return made;
}

plot call_percentiles_hosts(bool quick) {
  plot made{"256 bytes to another host and back: how long the slow ones take",
            "Lower is better. At 100: 99 of 100 calls are answered within this time. Each band is three turns.",
            {"calls of which one takes longer", "", true},
            {"time until the answer", "us", true}};
  const testbed all({"h1", "h2"});
  const kits proofs;
  for (const auto& each : ways(all, proofs)) {
    std::vector<figures_by_name> turns;
    for (int turn = 0; turn < turns_of(quick); ++turn) turns.push_back(each.figures({256}, quick ? 2'560 : 64 << 20));
    made.curves.push_back(
      curve_of_turns(each.name, each.as, turns, {{2, "us_256"}, {10, "tenth_256"}, {100, "late_256"}, {1'000, "last_256"}}, 1));
  }
  return made;
}

plot calls_at_once_hosts(bool quick) {
  plot made{"Small calls a second to another host, by those that are under way at once",
            "Higher is better. The answers of so many calls are awaited before the next ones begin.",
            {"calls under way at once", "", true},
            {"calls a second", "", true}};
  const testbed all({"h1", "h2"});
  const kits proofs;
  const auto numbers = quick ? std::vector<std::int64_t>{1, 16} : std::vector<std::int64_t>{1, 4, 16, 64, 256, 1'024};
  for (const auto& each : {way::of_caf(), way::of_troupe("a call of troupe over TCP", role::troupe, nullptr),
                           way::of_troupe("a call of troupe over TLS", role::variant, &proofs)}) {
    const auto found = each.figures(all, "rates", {{"at_once", list_of(numbers)}, {"count", quick ? "16" : "5000"}});
    made.curves.push_back(curve_over(numbers, each.name, each.as, [&](std::int64_t number) {
      return point_in(found, static_cast<double>(number), "per_s", "_" + std::to_string(number));
    }));
  }
  return made;
}

plot late_messages_hosts(bool quick) {
  plot made{"Heartbeats and errors of passes on a link of 1 Gbit/s: how late the slow ones are",
            "Lower is better. At 100: 99 of 100 come within this time. On the full link, messages of 16 MiB travel both ways. "
            "CAF sends one message after another, so a request waits for the large ones before it.",
            {"messages of which one takes longer", "", true},
            {"time there and back", "ms", true}};
  testbed all({"h1", "h2"});
  limit_both(all, "1gbit");
  const auto nodes = way::of_troupe("", role::troupe, nullptr);
  const auto add = [&](const std::string& name, role as, const way& by, const values_by_name& values, bool is_fast = true) {
    std::vector<figures_by_name> turns;
    auto more = values;
    more["count"] = quick ? "3" : is_fast ? "30" : "5";
    for (int turn = 0; turn < turns_of(quick); ++turn) {
      const auto& found = turns.emplace_back(by.figures(all, "late", more));
      if (const auto load = values.find("load"); load != values.end() && load->second == "none") continue;
      if (!quick && found.at("mbit") < least_of_full_link)
        throw std::runtime_error(name + ": expected a full link, but it carried " + short_number(found.at("mbit")) + " Mbit/s");
    }
    std::vector<std::pair<double, std::string>> names{{2, "us"}, {10, "tenth"}};
    if (is_fast) names.emplace_back(100, "late");
    made.curves.push_back(curve_of_turns(name, as, turns, names, 1e3));
  };
  add("a small request of CAF, full link", role::peer, way::of_caf(), {}, false);
  add("heartbeat, idle link", role::variant, nodes, {{"what", "heartbeat"}, {"load", "none"}});
  add("heartbeat, full link", role::troupe, nodes, {{"what", "heartbeat"}, {"load", "both_ways"}});
  add("error of a pass, idle link", role::variant, nodes, {{"what", "error"}, {"load", "none"}});
  add("error of a pass, full link", role::variant, nodes, {{"what", "error"}, {"load", "both_ways"}});
  return made;
}

plot shapes_by_hosts(bool quick) {
  plot made{
    "Backward over hosts, by the shape of the calls",
    "Lower is better. Each host has one node, and each function waits for 5 ms. All hosts share the cores of this machine.",
    {"hosts", "", true},
    {"time of the backward pass", "ms", true}};
  const std::vector<std::string> shapes =
    quick ? std::vector<std::string>{"pipeline"}
          : std::vector<std::string>{"pipeline", "tree", "parameter_server", "all_to_all", "ring"};
  for (const auto& shape : shapes) made.curves.push_back({words_of(shape), shape == "pipeline" ? role::troupe : role::variant});
  for (const std::size_t count : quick ? std::vector<std::size_t>{2} : std::vector<std::size_t>{2, 4, 8}) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back("h" + std::to_string(i));
    const testbed all(names);
    std::list<host_process> nodes;  // a process can't be moved
    for (std::size_t i = 1; i < count; ++i) {
      nodes.emplace_back(all[names[i]], "shapes", node_options("n" + std::to_string(i), port_of_nodes), values_by_name{});
      nodes.back().ready();
    }
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      host_process driver(all["h0"], "pass", node_options("n0", 0),
                          {{"nodes", std::to_string(count)},
                           {"port", std::to_string(port_of_nodes)},
                           {"shape", shapes[i]},
                           {"us", "5000"},
                           {"runs", quick ? "1" : "7"}});
      const auto found = driver.figures();
      made.curves[i].points.push_back(point_in(found, static_cast<double>(count), "ms", ""));
    }
  }
  return made;
}

}  // namespace

std::vector<plot_definition> host_plots() {
  return joined<plot_definition>({plots_of_group("messages", {{"call_by_size_hosts", call_by_size_hosts},
                                                              {"call_percentiles_hosts", call_percentiles_hosts},
                                                              {"calls_at_once_hosts", calls_at_once_hosts}}),
                                  plots_of_group("scheduling", {{"late_messages_hosts", late_messages_hosts}}),
                                  plots_of_group("shape", {{"shapes_by_hosts", shapes_by_hosts}})});
}

}  // namespace troupe::bench
