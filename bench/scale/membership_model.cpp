// SPDX-License-Identifier: BSD-3-Clause
#include "scale_figures.hpp"

#include <malloc.h>

#include "actors/membership/simulated_cluster.hpp"

namespace troupe::bench {

namespace {

using test::simulated_cluster;

constexpr int looks_in_interval = 4;  // how often in an interval the simulation looks whether all know

/// Lets time pass until the news about `who` have come to all others, but not longer than `intervals`. Returns seconds.
double until_known(simulated_cluster& all, std::size_t who, bool is_up, int intervals, const std::vector<std::size_t>& down) {
  const auto begin = all.now_ns();
  std::size_t at = 0;  // up to this one all know
  const auto knows = [&](std::size_t one) {
    return one == who || all.is_up(one, who) == is_up || std::find(down.begin(), down.end(), one) != down.end();
  };
  for (int passed = 0; passed < intervals * looks_in_interval; ++passed) {
    all.pass(all.interval_ns() / looks_in_interval);
    while (at < all.size() && knows(at)) ++at;
    if (at == all.size()) break;
  }
  return at < all.size() ? 60 : static_cast<double>(all.now_ns() - begin) / 1e9;
}

}  // namespace

double memory_of_a_table(std::size_t nodes) {
  std::vector<member_news> all;
  for (std::size_t i = 1; i < nodes; ++i)
    all.push_back({{"trainer" + std::to_string(i), node_id{i + 1}, "host" + std::to_string(i) + ".cluster.example", 4000},
                   0,
                   member_state::up});
  const auto before = mallinfo2();
  membership::member_table table({"trainer0", node_id{1}, "host0.cluster.example", 4000}, {});
  table.hear({}, all, 1);
  table.pass_on();
  const auto after = mallinfo2();
  return static_cast<double>(after.uordblks + after.hblkhd) - static_cast<double>(before.uordblks + before.hblkhd);
}

membership_figures simulate_membership(std::size_t nodes, const network_costs& costs, std::uint64_t seed,
                                       const progress& tell) {
  const auto name = "membership of " + std::to_string(nodes) + " nodes: ";
  membership_figures result;
  result.nodes = nodes;
  result.bytes_of_memory = memory_of_a_table(nodes);
  tell(name + "they meet");
  auto how = simulated_cluster::settings::meshed(nodes, seed);
  how.loses_what_is_cut = false;
  how.counts_bytes = true;
  how.costs = costs;
  how.longest_way_ns = costs.jitter_ns;
  simulated_cluster all(how);
  auto& network = all.network();
  all.pass(4 * all.interval_ns());
  network.forget_counts();
  const auto begin = all.now_ns();
  const auto wait_until = [&](int intervals) { all.pass(begin + intervals * all.interval_ns() - all.now_ns()); };
  tell(name + "one joins");
  result.join_s = until_known(all, all.join(1), true, 10, {});
  wait_until(10);
  tell(name + "one ends");
  all.kill(2);
  result.crash_s = until_known(all, 2, false, 30, {2});
  wait_until(40);
  const auto seconds = static_cast<double>(all.now_ns() - begin) / 1e9;
  for (std::size_t i = 0; i < network.size(); ++i) {
    const auto& each = network.counts(i);
    result.messages += static_cast<double>(each.sent) / seconds / static_cast<double>(nodes);
    result.bytes += static_cast<double>(each.bytes_sent) / seconds / static_cast<double>(nodes);
    result.cpu_share += static_cast<double>(each.cpu_ns) / 1e9 / seconds / static_cast<double>(nodes);
    result.busiest_messages = std::max(result.busiest_messages, static_cast<double>(each.sent) / seconds);
  }
  tell(name + "one freezes");
  all.freeze(3);
  result.freeze_s = until_known(all, 3, false, 100, {2, 3});
  return result;
}

}  // namespace troupe::bench
