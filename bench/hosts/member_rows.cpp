// SPDX-License-Identifier: BSD-3-Clause
// Rows of many nodes that know each other.
#include <algorithm>
#include <cstdio>
#include <future>
#include <memory>

#include "../support/other_process.hpp"
#include "actors/membership/simulated_cluster.hpp"
#include "host_process.hpp"
#include "rows.hpp"

namespace troupe::bench {

namespace {

using hosts::testbed;
using std::chrono::seconds;

constexpr int host_count = 10;
constexpr int patience_s = 60;
constexpr int settle_s = 5;
constexpr int idle_s = 10;
constexpr std::size_t starting_at_once = 5;  // processes: a start computes on one core, and waits

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
  std::vector<std::unique_ptr<host_process>> nodes;
  std::string join;
  const auto start = [&](int others) {
    const auto number = static_cast<int>(nodes.size());
    const auto& on = all[host_of(number)];
    nodes.push_back(std::make_unique<host_process>(
      on, "member",
      node_options("n" + std::to_string(number + 1), 0, join.empty() ? std::vector<std::string>{} : std::vector{join}),
      values_by_name{{"others", std::to_string(others)}, {"patience", patience}}));
  };
  start(count - 2);
  join = all[host_of(0)].name() + ":" + std::to_string(nodes.front()->ready());
  for (std::size_t ready = 1; static_cast<int>(ready) < count - 1;) {
    const auto end = std::min(ready + starting_at_once, static_cast<std::size_t>(count - 1));
    while (nodes.size() < end) start(count - 2);
    for (; ready < end; ++ready) nodes[ready]->ready();
    if (ready % 10 == 1) std::fprintf(stderr, "   %zu nodes\n", ready - 1);
  }
  const auto long_enough = seconds(patience_s + 60);
  cluster_figures found;
  for (const auto& each : nodes) each->figure("known", long_enough);
  start(count - 1);
  nodes.back()->ready();
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
  host_process members(all["h1"], "members", {},
                       {{"count", std::to_string(count)},
                        {"patience", std::to_string(quick ? 10 : patience_s)},
                        {"settle", std::to_string(quick ? 0 : settle_s)},
                        {"seconds", std::to_string(quick ? 1 : idle_s)}});
  const auto found = members.figures(seconds(6 * patience_s));
  return {found.at("joined_s"), found.at("complete_s"), found.at("known"),
          found.at("cpu"),      found.at("threads"),    found.at("descriptors")};
}

int count_of(bool quick) { return quick ? 12 : 100; }

/// Measures once for the rows that share a cluster. Fails for all of them if it fails.
template <class Measure>
auto once(Measure measure) {
  return [measure, found = std::make_shared<std::shared_future<cluster_figures>>()](bool quick) {
    if (!found->valid()) *found = std::async(std::launch::deferred, [=] { return measure(count_of(quick), quick); }).share();
    return found->get();
  };
}

/// `suffix`: of the names of the rows. `what`: the nodes. `who`: the node that was asked for its peers.
template <class Cluster>
std::vector<row_definition> rows_of(const std::string& suffix, const std::string& what, const std::string& until,
                                    const std::string& who, const Cluster& cluster) {
  const auto known = [=](const cluster_figures& of, bool quick) {
    return short_number(of.known) + " of " + std::to_string(count_of(quick) - 1) + " peers known to " + who;
  };
  const auto idle = [=](bool quick) -> row {
    const auto of = cluster(quick);
    return {{0, of.cpu, 0},
            of.cpu,
            "a node has " + short_number(of.threads) + " threads and " + short_number(of.descriptors) + " descriptors; " +
              known(of, quick)};
  };
  const auto join = [=](bool quick) -> row {
    const auto of = cluster(quick);
    return {
      {0, of.complete_s, 0}, of.complete_s, "join returned after " + short_number(of.joined_s) + " s; " + known(of, quick)};
  };
  return {{"idle_100" + suffix, "% of a core", at_most(0.3),
           "CPU of a node among 100 nodes" + what + " that do nothing; ratio in percent of a core.", idle},
          {"join_100" + suffix, "s", at_most(2), "Seconds until " + until + " know each other.", join}};
}

}  // namespace

std::vector<row_definition> member_rows() {
  return joined<row_definition>(
    {rows_of("", "", "the hundredth node and all others", "the last node", once(nodes_in_processes)),
     rows_of("_one_process", " of one process", "100 nodes of one process", "the node that knows fewest",
             once(nodes_in_one_process))});
}

namespace {

using test::simulated_cluster;

/// Messages of membership that a node sends in a second: heartbeats, their answers, greetings and news. One node joins and one
/// ends meanwhile.
double messages_of_a_node(std::size_t count) {
  simulated_cluster all(simulated_cluster::settings::meshed(count, 1));
  all.pass(4 * all.interval_ns());
  all.forget_counts();
  const auto begin = all.now_ns();
  all.join(1);
  all.pass(10 * all.interval_ns());
  all.kill(2);
  all.pass(30 * all.interval_ns());
  const auto seconds = static_cast<double>(all.now_ns() - begin) / 1e9;
  return static_cast<double>(all.messages()) / seconds / static_cast<double>(count);
}

/// Intervals of heartbeats until a frozen node is unreachable for all others.
double intervals_until_all_know(std::size_t count, std::uint64_t seed) {
  constexpr std::size_t frozen = 1;
  simulated_cluster all(simulated_cluster::settings::meshed(count, seed));
  all.pass(4 * all.interval_ns());
  all.freeze(frozen);
  const auto knows = [&](std::size_t at) { return at == frozen || !all.is_up(at, frozen); };
  constexpr int looks = 4;
  for (int passed = 1; passed <= 100 * looks; ++passed) {
    all.pass(all.interval_ns() / looks);
    std::size_t at = 0;
    while (at < count && knows(at)) ++at;
    if (at == count) return static_cast<double>(passed) / looks;
  }
  return 100;
}

row measure_messages(bool quick) {
  const auto few = messages_of_a_node(100);
  const auto many = messages_of_a_node(quick ? 300 : 10'000);
  return {{few, many, 0}, many / few};
}

row measure_news(bool quick) {
  const auto few = intervals_until_all_know(100, 1);
  double slowest = 0;
  for (std::uint64_t seed = 1; seed <= (quick ? 1 : 2); ++seed)
    slowest = std::max(slowest, intervals_until_all_know(quick ? 300 : 10'000, seed));
  return {{few, slowest, 0}, slowest};
}

}  // namespace

std::vector<row_definition> simulated_rows() {
  return {{"simulated_messages", "1/s", at_most(1.2),
           "Messages of membership that a node sends among 10,000 nodes; peer: among 100. Simulated.", measure_messages},
          {"simulated_news", "intervals", at_most(15),
           "Intervals of heartbeats until 10,000 nodes know that one is frozen; peer: 100 nodes. Simulated.", measure_news}};
}

}  // namespace troupe::bench
