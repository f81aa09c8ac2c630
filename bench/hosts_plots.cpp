// SPDX-License-Identifier: BSD-3-Clause
#include "hosts_plots.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "hosts_kits.hpp"
#include "hosts_part.hpp"

namespace troupe::bench {

namespace {

using hosts::testbed;
using std::chrono::seconds;

constexpr auto longest_part = seconds(300);
constexpr int port_of_nodes = 4001;

std::vector<std::int64_t> sizes(bool quick) {
  return quick ? std::vector<std::int64_t>{0, 1024}
               : std::vector<std::int64_t>{0, 256, 4'096, 65'536, 1 << 20, 16 << 20, 64 << 20};
}

/// Bare TCP from h1 to h2, size by size.
curve bare_tcp(const testbed& all, bool quick) {
  curve made{"bare TCP", role::floor};
  for (const auto bytes : sizes(quick)) {
    host_part echo(all["h2"], "echo", {}, {{"listen", all["h2"].ipv4()}});  // it serves one connection
    const auto echo_port = std::to_string(echo.ready());
    const auto runs = quick ? 3 : std::clamp<std::int64_t>((64 << 20) / (bytes + 1), 5, 1'000);
    const auto sent = std::to_string(std::max<std::int64_t>(1, bytes));
    host_part floor(
      all["h1"], "floor", {},
      {{"address", all["h2"].ipv4()}, {"port", echo_port}, {"runs", std::to_string(runs)}, {"bytes", sent}, {"answer", sent}});
    made.points.push_back({static_cast<double>(bytes), floor.figures(longest_part).at("us")});
  }
  return made;
}

/// The figures of calls with so many bytes from h1 to h2, by TLS if there are proofs. `bytes`: how many all calls of a size send.
std::map<std::string, double> figures_of_calls(const testbed& all, const kits* proofs, const std::vector<std::int64_t>& sizes,
                                               std::int64_t bytes) {
  const auto options = [&](const std::string& node, int at, const std::vector<std::string>& join) {
    return proofs != nullptr ? proofs->options(node, at, join) : node_options(node, at, join);
  };
  host_part node(all["h2"], "node", options("b", port_of_nodes, {}), {});
  node.ready();
  std::string list;
  for (const auto size : sizes) list += (list.empty() ? "" : ",") + std::to_string(size);
  host_part driver(all["h1"], "sizes", options("a", 0, {"h2:" + std::to_string(port_of_nodes)}),
                   {{"sizes", list}, {"bytes", std::to_string(bytes)}});
  return driver.figures(longest_part);
}

curve calls_of_troupe(const testbed& all, const std::string& name, role part, const kits* proofs, bool quick) {
  const auto found = figures_of_calls(all, proofs, sizes(quick), quick ? 1'000 : 64 << 20);
  curve made{name, part};
  for (const auto bytes : sizes(quick)) {
    const auto size = std::to_string(bytes);
    made.points.push_back(
      {static_cast<double>(bytes), found.at("us_" + size), {found.at("low_" + size), found.at("high_" + size)}});
  }
  return made;
}

plot call_by_size_hosts(const hosts_effort& effort) {
  plot made{
    .group = "messages",
    .name = "call_by_size_hosts",
    .title = "Bytes to another host and back, by their number",
    .how_to_read = "Lower is better. The hosts are network namespaces of this machine: the link is as fast as the machine.",
    .x = {"size of the message", "bytes", true},
    .y = {"time until the answer", "us", true}};
  const testbed all({"h1", "h2"});
  const kits proofs;
  made.curves.push_back(bare_tcp(all, effort.quick));
  made.curves.push_back(calls_of_troupe(all, "a call of troupe over TCP", role::troupe, nullptr, effort.quick));
  made.curves.push_back(calls_of_troupe(all, "a call of troupe over TLS", role::variant, &proofs, effort.quick));
  return made;
}

/// The slow ones among calls with 256 bytes.
curve late_calls(const testbed& all, const std::string& name, role part, const kits* proofs, bool quick) {
  const auto found = figures_of_calls(all, proofs, {256}, quick ? 2'560 : 64 << 20);
  return {name, part, {{2, found.at("us_256")}, {100, found.at("late_256")}, {1'000, found.at("last_256")}}};
}

plot call_percentiles_hosts(const hosts_effort& effort) {
  plot made{.group = "messages",
            .name = "call_percentiles_hosts",
            .title = "256 bytes to another host and back: how long the slow ones take",
            .how_to_read = "Lower is better. At 100 is the time that 99 of 100 calls keep. 2,000 calls each.",
            .x = {"calls of which one takes longer", "", true},
            .y = {"time until the answer", "us", true}};
  const testbed all({"h1", "h2"});
  const kits proofs;
  made.curves.push_back(late_calls(all, "a call of troupe over TCP", role::troupe, nullptr, effort.quick));
  made.curves.push_back(late_calls(all, "a call of troupe over TLS", role::variant, &proofs, effort.quick));
  return made;
}

plot shapes_by_hosts(const hosts_effort& effort) {
  plot made{
    .group = "shape",
    .name = "shapes_by_hosts",
    .title = "Backward over hosts, by the shape of the calls",
    .how_to_read =
      "Lower is better. Each host has one node, and each function waits for 5 ms. All hosts share the cores of this machine.",
    .x = {"hosts", "", true},
    .y = {"time of the backward pass", "ms", true}};
  const std::vector<std::string> shapes =
    effort.quick ? std::vector<std::string>{"pipeline"}
                 : std::vector<std::string>{"pipeline", "tree", "parameter_server", "all_to_all", "ring"};
  for (const auto& shape : shapes) {
    auto words = shape;
    std::replace(words.begin(), words.end(), '_', ' ');
    made.curves.push_back({words, shape == "pipeline" ? role::troupe : role::variant});
  }
  for (const std::size_t count : effort.quick ? std::vector<std::size_t>{2} : std::vector<std::size_t>{2, 4, 8}) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back("h" + std::to_string(i));
    const testbed all(names);
    std::list<host_part> nodes;  // a part can't be moved
    for (std::size_t i = 1; i < count; ++i) {
      nodes.emplace_back(all[names[i]], "shapes", node_options("n" + std::to_string(i), port_of_nodes), values_of_part{});
      nodes.back().ready();
    }
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      host_part driver(all["h0"], "pass", node_options("n0", 0),
                       {{"nodes", std::to_string(count)},
                        {"port", std::to_string(port_of_nodes)},
                        {"shape", shapes[i]},
                        {"us", "5000"},
                        {"runs", effort.quick ? "1" : "7"}});
      const auto found = driver.figures(longest_part);
      made.curves[i].points.push_back({static_cast<double>(count), found.at("ms"), {found.at("low"), found.at("high")}});
    }
  }
  return made;
}

}  // namespace

std::vector<hosts_plot> hosts_plots() {
  return {{"call_by_size_hosts", call_by_size_hosts},
          {"call_percentiles_hosts", call_percentiles_hosts},
          {"shapes_by_hosts", shapes_by_hosts}};
}

}  // namespace troupe::bench
