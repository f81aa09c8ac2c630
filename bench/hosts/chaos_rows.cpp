// SPDX-License-Identifier: BSD-3-Clause
// Faults at random, with a training on top.
#include "rows.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "chaos_plan.hpp"
#include "chaos_world.hpp"

namespace troupe::bench {

namespace {

using chaos_clock = std::chrono::steady_clock;

/// Lets the events happen at their times.
void play(chaos_world& world, const std::vector<chaos_event>& events) {
  std::multimap<std::chrono::milliseconds, std::function<void()>> at;
  for (const auto& each : events) {
    at.emplace(each.begin, [&world, each] {
      std::fprintf(stderr, "   %s\n", each.text().c_str());
      world.begin(each);
    });
    at.emplace(each.end, [&world, each] { world.end(each); });
  }
  const auto begin = chaos_clock::now();
  for (const auto& [when, act] : at) {
    std::this_thread::sleep_until(begin + when);
    act();
  }
}

std::string note_of(const chaos_counts& all, int rounds, int events, std::uint32_t seed) {
  const auto part = [](int number, const char* what) { return std::to_string(number) + " " + what + ", "; };
  return part(all.hangs, "hangs") + part(all.leaks, "leaks") + part(all.lost_checkpoints, "lost checkpoints") +
         part(all.not_back, "nodes not back") + std::to_string(all.ended_runs) + " runs that ended; " + std::to_string(events) +
         " events in " + std::to_string(rounds) + " rounds of seed " + std::to_string(seed);
}

}  // namespace

std::vector<hosts_row> chaos_rows() {
  const auto measure = [](const hosts_effort& effort) {
    std::fprintf(stderr, "   seed %u\n", effort.seed);
    chaos_plan plan(effort.seed, chaos_world::hosts());
    chaos_world world;
    int rounds = 0;
    int events = 0;
    const auto length = std::chrono::duration<double>(effort.quick ? 1 : effort.minutes * 60);
    for (const auto begin = chaos_clock::now(); rounds == 0 || chaos_clock::now() - begin < length; ++rounds) {
      const auto drawn = plan.round();
      events += static_cast<int>(drawn.size());
      play(world, drawn);
      world.expect_recovery();
    }
    world.finish();
    const auto all = world.counts();
    return hosts_figures{
      {0, static_cast<double>(all.sum()), 0}, static_cast<double>(all.sum()), note_of(all, rounds, events, effort.seed)};
  };
  return {{.name = "chaos_hosts", .unit = "faults", .bar = 0, .at_most = true, .measure = measure}};
}

}  // namespace troupe::bench
