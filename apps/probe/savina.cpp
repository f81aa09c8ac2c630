// SPDX-License-Identifier: BSD-3-Clause
#include "apps/probe/savina.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/messages/errors.hpp>

#include "apps/probe/limits.hpp"

namespace troupe::apps::probe {

namespace {

using clock = std::chrono::steady_clock;
using names = std::vector<std::string>;

constexpr std::int64_t calls_of_burst = 50;  // of a node, between two looks at the clock
constexpr std::size_t creatures_of_node = 8;

remote_module probe_on(node& here, const std::string& name) { return here.peer(name, time_to_find).create(type); }

std::vector<remote_module> probes_on(node& here, const names& peers, std::size_t of_each = 1) {
  std::vector<remote_module> made;
  for (const auto& each : peers)
    for (std::size_t i = 0; i < of_each; ++i) made.push_back(probe_on(here, each));
  return made;
}

/// The generator of Park and Miller.
std::int64_t next_random(std::int64_t& last) { return last = last * 16'807 % 2'147'483'647; }

template <class Value>
Value answer(const future<call_reply>& asked, const char* name) {
  return get<Value>(asked.get().values, name);
}

void expect_count(const std::string& of, std::int64_t expected, std::int64_t came) {
  if (expected != came)
    throw error(errc::misuse, of + ": expected " + std::to_string(expected) + ", got " + std::to_string(came));
}

/// What one step of a program does again and again. Returns how many calls it made.
using step = std::function<std::int64_t()>;

step ping_pong(node& here, const names& peers) {
  return [all = probes_on(here, peers)] {
    for (std::int64_t i = 0; i < calls_of_burst; ++i) all[static_cast<std::size_t>(i) % all.size()].call("echo").get();
    return calls_of_burst;
  };
}

step thread_ring(node& here, const names& peers) {
  auto ring = peers;
  ring.push_back(here.name());
  const auto first = probe_on(here, ring.front());
  first.call("savina_ring", {}, {{"ring", names(ring.begin() + 1, ring.end())}}).get();
  return [first, nodes = static_cast<std::int64_t>(ring.size())] {
    expect_count("the nodes of a ring that a token has passed", nodes,
                 answer<std::int64_t>(first.call("savina_token"), "passed"));
    return nodes;
  };
}

step big(node& here, names everybody) {
  auto all = probes_on(here, everybody);
  return [all = std::move(all), everybody = std::move(everybody), seed = std::int64_t{1}]() mutable {
    std::vector<future<call_reply>> asked;
    for (const auto& each : all)
      asked.push_back(each.call("savina_ask", {}, {{"peers", everybody}, {"seed", next_random(seed)}}));
    std::int64_t count = 0;
    for (const auto& each : asked) count += answer<std::int64_t>(each, "count");
    expect_count("the answers to questions of all nodes", std::ssize(all) * calls_of_burst, count);
    return count;
  };
}

/// One half of all creatures meets the other half, again and again, in another order each time.
step chameneos(node& here, const names& everybody) {
  struct creatures {
    std::vector<remote_module> all;
    std::vector<std::int64_t> colours{};
    std::int64_t meetings = 0;
    std::int64_t seed = 1;
  };
  const auto mall = std::make_shared<creatures>(creatures{probes_on(here, everybody, creatures_of_node)});
  for (std::size_t i = 0; i < mall->all.size(); ++i) mall->colours.push_back(static_cast<std::int64_t>(i % 3));
  return [mall] {
    auto& colours = mall->colours;
    std::vector<std::size_t> order(mall->all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (auto i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[static_cast<std::size_t>(next_random(mall->seed)) % (i + 1)]);
    const auto asked = [&](std::size_t who, std::size_t other) {
      return mall->all[who].call("savina_meet", {}, {{"colour", colours[who]}, {"other", colours[other]}});
    };
    std::vector<future<call_reply>> open;
    for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
      open.push_back(asked(order[i], order[i + 1]));
      open.push_back(asked(order[i + 1], order[i]));
    }
    for (std::size_t i = 0; i < open.size(); ++i) colours[order[i]] = answer<std::int64_t>(open[i], "colour");
    for (std::size_t i = 0; i + 1 < open.size(); i += 2)
      expect_count("the colour of a creature after a meeting", colours[order[i]], colours[order[i + 1]]);
    mall->meetings += std::ssize(open) / 2;
    std::int64_t met = 0;
    for (const auto& each : mall->all) met += answer<std::int64_t>(each.call("savina_met"), "met");
    expect_count("the creatures that were met", 2 * mall->meetings, met);
    return std::ssize(open) + std::ssize(mall->all);
  };
}

step begun(const std::string& program, node& here, const names& peers) {
  auto everybody = peers;
  everybody.push_back(here.name());
  if (program == "ping_pong") return ping_pong(here, peers);
  if (program == "thread_ring") return thread_ring(here, peers);
  if (program == "big") return big(here, everybody);
  if (program == "chameneos") return chameneos(here, everybody);
  throw error(errc::misuse, "there is no program '" + program + "'");
}

call_reply run(node& here, const std::string& program, const names& peers, std::chrono::duration<double> length) {
  if (peers.empty()) throw error(errc::misuse, "expected other nodes, got none");
  const auto next = begun(program, here, peers);
  next();  // does not count
  std::int64_t count = 0;
  const auto begin = clock::now();
  do count += next();
  while (clock::now() - begin < length);
  return {{}, {{"count", count}, {"seconds", std::chrono::duration<double>(clock::now() - begin).count()}}};
}

}  // namespace

call_reply savina_actor::call(const std::string& method, call_arguments& arguments) {
  const auto& values = arguments.values;
  auto& here = arguments.here;
  if (method == "savina")
    return run(here, get<std::string>(values, "program"), get<names>(values, "peers"),
               within(std::chrono::duration<double>(get<double>(values, "seconds"))));
  if (method == "savina_ring") {
    auto ring = get<names>(values, "ring");
    if (ring.empty()) return {};
    next_ = probe_on(here, ring.front());
    next_->call("savina_ring", {}, {{"ring", names(ring.begin() + 1, ring.end())}}).get();
    return {};
  }
  if (method == "savina_token")
    return {{}, {{"passed", next_ ? 1 + answer<std::int64_t>(next_->call("savina_token"), "passed") : std::int64_t{1}}}};
  if (method == "savina_ask")
    return {{}, {{"count", ask(here, get<names>(values, "peers"), get<std::int64_t>(values, "seed"))}}};
  if (method == "savina_meet")
    return {{}, {{"colour", meet(get<std::int64_t>(values, "colour"), get<std::int64_t>(values, "other"))}}};
  if (method == "savina_met") return {{}, {{"met", met_}}};
  throw error(errc::misuse, "a probe has no method '" + method + "'");
}

std::int64_t savina_actor::ask(node& here, const names& peers, std::int64_t seed) {
  if (asked_.empty()) asked_ = probes_on(here, peers);
  if (asked_.empty()) throw error(errc::misuse, "expected nodes to ask, got none");
  seed = std::clamp<std::int64_t>(seed, 1, 1 << 30);  // another node chose it
  for (std::int64_t i = 0; i < calls_of_burst; ++i)
    asked_[static_cast<std::size_t>(next_random(seed)) % asked_.size()].call("echo").get();
  return calls_of_burst;
}

/// The third colour if both differ.
std::int64_t savina_actor::meet(std::int64_t colour, std::int64_t other) {
  const auto own = colour_.value_or(colour);
  ++met_;
  return colour_.emplace(own == other ? own : 3 - own - other);
}

}  // namespace troupe::apps::probe
