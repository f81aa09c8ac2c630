// SPDX-License-Identifier: BSD-3-Clause
// Faults at random, with a training on top.
#include <cstdio>
#include <thread>

#include "chaos_world.hpp"
#include "rows.hpp"

namespace troupe::bench {

namespace {

bool share_something(const chaos_event& one, const chaos_event& other) {
  const auto is_of_process = [](const chaos_event& x) {
    return x.what == chaos_event::kind::kill || x.what == chaos_event::kind::freeze;
  };
  if (is_of_process(one) != is_of_process(other)) return false;
  if (is_of_process(one)) return one.who == other.who;
  if (one.what != other.what) return false;
  return one.who == other.who && one.other == other.other;
}

}  // namespace

std::string chaos_event::text() const {
  constexpr const char* names[] = {"kill the process of ", "freeze the process of ", "unplug ", "cut "};
  char length[32];
  std::snprintf(length, sizeof length, " for %.1f s", std::chrono::duration<double>(end - begin).count());
  return names[static_cast<int>(what)] + who + (what == kind::cut ? " from " + other : "") + length;
}

chaos_event chaos_plan::draw() {
  chaos_event drawn;
  drawn.what = static_cast<chaos_event::kind>(number(0, 3));
  const auto last = static_cast<int>(hosts_.size()) - 1;
  auto who = number(0, last);
  if (drawn.what == chaos_event::kind::cut) {
    auto other = number(0, last - 1);
    if (other >= who) ++other;
    if (other < who) std::swap(who, other);  // a link has one name
    drawn.other = hosts_[static_cast<std::size_t>(other)];
  }
  drawn.who = hosts_[static_cast<std::size_t>(who)];
  drawn.begin = std::chrono::milliseconds(number(0, 4000));
  // Most events are over before the others forget a node, some are not.
  drawn.end = drawn.begin + std::chrono::milliseconds(number(0, 3) > 0 ? number(100, 2500) : number(3500, 7000));
  return drawn;
}

std::vector<chaos_event> chaos_plan::round() {
  std::vector<chaos_event> all;
  for (auto left = number(1, 4); left > 0; --left) {
    const auto drawn = draw();
    if (std::none_of(all.begin(), all.end(), [&](const auto& each) { return share_something(each, drawn); }))
      all.push_back(drawn);
  }
  std::sort(all.begin(), all.end(), [](const auto& one, const auto& other) { return one.begin < other.begin; });
  return all;
}

namespace {

using chaos_clock = std::chrono::steady_clock;

/// Lets the events happen at their times.
void play(chaos_world& world, const std::vector<chaos_event>& events) {
  std::multimap<std::chrono::milliseconds, std::function<void()>> at;
  for (const auto& each : events) {
    at.emplace(each.begin, [&world, each] {
      std::fprintf(stderr, "   %s\n", each.text().c_str());
      world.act(each, true);
    });
    at.emplace(each.end, [&world, each] { world.act(each, false); });
  }
  const auto begin = chaos_clock::now();
  for (const auto& [when, act] : at) {
    std::this_thread::sleep_until(begin + when);
    act();
  }
}

std::string note_of(const chaos_counts& all, int rounds, int events, std::uint32_t seed) {
  const auto count = [](int number, const char* what) { return std::to_string(number) + " " + what + ", "; };
  return count(all.hangs, "hangs") + count(all.leaks, "leaks") + count(all.lost_checkpoints, "lost checkpoints") +
         count(all.not_back, "nodes not back") + std::to_string(all.ended_runs) + " runs that ended; " +
         std::to_string(events) + " events in " + std::to_string(rounds) + " rounds of seed " + std::to_string(seed);
}

row chaos(const chaos_choice& how, bool quick) {
  std::fprintf(stderr, "   seed %u\n", how.seed);
  chaos_plan plan(how.seed, chaos_world::hosts());
  chaos_world world;
  int rounds = 0;
  int events = 0;
  const auto length = std::chrono::duration<double>(quick ? 1 : how.minutes * 60);
  for (const auto begin = chaos_clock::now(); rounds == 0 || chaos_clock::now() - begin < length; ++rounds) {
    const auto drawn = plan.round();
    events += static_cast<int>(drawn.size());
    play(world, drawn);
    world.expect_recovery();
  }
  world.finish();
  const auto faults = static_cast<double>(world.counts().sum());
  return {{0, faults, 0}, faults, note_of(world.counts(), rounds, events, how.seed)};
}

}  // namespace

std::vector<row_definition> chaos_rows(const chaos_choice& how) {
  return {{"chaos_hosts", "faults", at_most(0),
           "Promises broken while hosts are killed, frozen and cut off at random; ratio: their count.",
           [=](bool quick) { return chaos(how, quick); }}};
}

}  // namespace troupe::bench
