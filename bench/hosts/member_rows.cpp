// SPDX-License-Identifier: BSD-3-Clause
// Rows of many nodes that know each other.
#include "rows.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host_part.hpp"
#include "../support/process_figures.hpp"

namespace troupe::bench {

namespace {

using hosts::testbed;
using std::chrono::seconds;

constexpr int host_count = 10;
constexpr int patience_s = 60;
constexpr int settle_s = 5;
constexpr int idle_s = 10;

/// What a cluster of nodes costs.
struct cluster_figures {
  double joined_s = 0;    // until the join of the last node returned
  double complete_s = 0;  // until the last node knew all others
  double known = 0;       // peers that the node knew that knew fewest
  double cpu = 0;         // of a node at idle, percent of a core
  double threads = 0;     // of a node
  double descriptors = 0;
};

std::string host_of(int node) { return "h" + std::to_string(node % host_count + 1); }

/// `count` processes with a node each, spread over the hosts. All nodes join the first one; the last one joins when the others
/// know each other.
cluster_figures nodes_in_processes(int count, bool quick) {
  std::vector<std::string> names;
  for (int i = 0; i < host_count; ++i) names.push_back(host_of(i));
  const testbed all(names);
  const auto patience = std::to_string(quick ? 10 : patience_s);
  std::vector<std::unique_ptr<host_part>> nodes;
  std::string join;
  const auto start = [&](int others) {
    const auto number = static_cast<int>(nodes.size());
    const auto& on = all[host_of(number)];
    nodes.push_back(std::make_unique<host_part>(
      on, "member",
      node_options("n" + std::to_string(number + 1), 0, join.empty() ? std::vector<std::string>{} : std::vector{join}),
      values_of_part{{"others", std::to_string(others)}, {"patience", patience}}));
    const auto port = nodes.back()->ready();
    if (join.empty()) join = on.name() + ":" + std::to_string(port);
  };
  while (static_cast<int>(nodes.size()) < count - 1) {
    start(count - 2);
    if (nodes.size() % 10 == 0) std::fprintf(stderr, "   %zu nodes\n", nodes.size());
  }
  const auto long_enough = seconds(patience_s + 60);
  cluster_figures found;
  for (const auto& each : nodes) each->figure("known", long_enough);
  start(count - 1);
  found.joined_s = nodes.back()->figure("joined_s", long_enough);
  found.complete_s = nodes.back()->figure("complete_s", long_enough);
  found.known = nodes.back()->figure("known", long_enough);
  std::this_thread::sleep_for(seconds(quick ? 0 : settle_s));
  std::vector<double> before;
  for (const auto& each : nodes) before.push_back(process_figures::of(each->pid()).cpu_seconds);
  const auto length = seconds(quick ? 1 : idle_s);
  std::this_thread::sleep_for(length);
  double cpu_seconds = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto now = process_figures::of(nodes[i]->pid());
    cpu_seconds += now.cpu_seconds - before[i];
    found.threads = std::max(found.threads, static_cast<double>(now.threads));
    found.descriptors = std::max(found.descriptors, static_cast<double>(now.descriptors));
  }
  found.cpu = cpu_seconds / static_cast<double>(length.count()) / count * 100;
  return found;
}

/// `count` nodes in one process of one host.
cluster_figures nodes_in_one_process(int count, bool quick) {
  const testbed all({"h1"});
  host_part members(all["h1"], "members", {},
                    {{"count", std::to_string(count)},
                     {"patience", std::to_string(quick ? 10 : patience_s)},
                     {"settle", std::to_string(quick ? 0 : settle_s)},
                     {"seconds", std::to_string(quick ? 1 : idle_s)}});
  const auto found = members.figures(seconds(6 * patience_s));
  return {found.at("joined_s"), found.at("complete_s"), found.at("known"),
          found.at("cpu"),      found.at("threads"),    found.at("descriptors")};
}

int count_of(const hosts_effort& effort) { return effort.quick ? 12 : 100; }

/// Measures once for the rows that share a cluster. Fails for all of them if it fails.
template <class Measure>
auto once(Measure measure) {
  return [measure, found = std::make_shared<std::shared_future<cluster_figures>>()](const hosts_effort& effort) {
    if (!found->valid())
      *found = std::async(std::launch::deferred, [=] { return measure(count_of(effort), effort.quick); }).share();
    return found->get();
  };
}

std::string known_text(const cluster_figures& of, int count, const std::string& who) {
  return short_number(of.known) + " of " + std::to_string(count - 1) + " peers known to " + who;
}

template <class Cluster>
std::vector<hosts_row> rows_of(const std::string& suffix, const std::string& who, const Cluster& cluster) {
  const auto idle = [=](const hosts_effort& effort) {
    const auto of = cluster(effort);
    return hosts_figures{{0, of.cpu, 0},
                         of.cpu,
                         "a node has " + short_number(of.threads) + " threads and " + short_number(of.descriptors) +
                           " descriptors; " + known_text(of, count_of(effort), who)};
  };
  const auto join = [=](const hosts_effort& effort) {
    const auto of = cluster(effort);
    return hosts_figures{{0, of.complete_s, 0},
                         of.complete_s,
                         "join returned after " + short_number(of.joined_s) + " s; " + known_text(of, count_of(effort), who)};
  };
  return {{.name = "idle_100" + suffix, .unit = "% of a core", .bar = 0.3, .at_most = true, .measure = idle},
          {.name = "join_100" + suffix, .unit = "s", .bar = 2, .at_most = true, .measure = join}};
}

}  // namespace

std::vector<hosts_row> member_rows() {
  auto all = rows_of("", "the last node", once(nodes_in_processes));
  for (auto& each : rows_of("_one_process", "the node that knows fewest", once(nodes_in_one_process))) all.push_back(each);
  return all;
}

}  // namespace troupe::bench
