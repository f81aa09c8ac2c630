// SPDX-License-Identifier: BSD-3-Clause
#include "rows.hpp"

#include <algorithm>
#include <cstdint>

#include "actors/membership/simulated_cluster.hpp"

namespace troupe::bench {

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
  constexpr int parts = 4;
  for (int passed = 1; passed <= 100 * parts; ++passed) {
    all.pass(all.interval_ns() / parts);
    std::size_t at = 0;
    while (at < count && knows(at)) ++at;
    if (at == count) return static_cast<double>(passed) / parts;
  }
  return 100;
}

hosts_figures measure_messages(const hosts_effort& how) {
  const auto few = messages_of_a_node(100);
  const auto many = messages_of_a_node(how.quick ? 300 : 10'000);
  return {{few, many, 0}, many / few};
}

hosts_figures measure_news(const hosts_effort& how) {
  const auto few = intervals_until_all_know(100, 1);
  double slowest = 0;
  for (std::uint64_t seed = 1; seed <= (how.quick ? 1 : 2); ++seed)
    slowest = std::max(slowest, intervals_until_all_know(how.quick ? 300 : 10'000, seed));
  return {{few, slowest, 0}, slowest};
}

}  // namespace

std::vector<hosts_row> simulated_rows() {
  return {
    {"simulated_messages", "1/s", 1.2, true, measure_messages},
    {"simulated_news", "intervals", 15, true, measure_news},
  };
}

}  // namespace troupe::bench
