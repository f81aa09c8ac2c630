// SPDX-License-Identifier: BSD-3-Clause
#include "message_plots.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "../support/grpc_calls.hpp"
#include "node_pair.hpp"
#include "exchanges.hpp"
#include "scheduling_plots.hpp"
#include "trainings.hpp"

namespace troupe::bench {

namespace {

/// A way to send bytes to another process and back.
struct way {
  std::string name;
  role part = role::variant;
  std::function<std::vector<double>(int runs, std::size_t bytes)> run;
};

std::vector<way> ways() {
  const auto calls = [](carrier by) { return [by](int runs, std::size_t bytes) { return echo_calls(by, runs, bytes); }; };
  std::vector<way> all{
    {"bare TCP", role::floor, tcp_exchanges},
    {"a request of CAF", role::peer, [](int runs, std::size_t bytes) { return caf_requests(runs, bytes); }},
    {"a call of troupe over TCP", role::variant, calls(carrier::tcp)},
    {"a call of troupe over TLS", role::variant, calls(carrier::tls)},
    {"a call of troupe within a machine", role::troupe, calls(carrier::shared_memory)},
  };
  if (has_grpc()) all.insert(all.begin() + 2, {"a call of gRPC", role::peer, grpc_calls});
  return all;
}

/// As many as take about a second.
int runs_for(std::size_t bytes, bool quick) {
  if (quick) return 3;
  return std::clamp(static_cast<int>((std::size_t{64} << 20) / (bytes + 1)), 8, 2'000);
}

}  // namespace

point point_of(double x, const std::vector<double>& runs) {
  const auto middle = percentile(runs, 0.5);
  return {x, middle, spread_of(runs, middle)};
}

namespace {

/// The curves of some ways by the size of what they carry. The band of a point: the middle half of its runs.
std::vector<curve> curves_by_size(const std::vector<way>& ways, bool quick) {
  std::vector<curve> made;
  for (const auto& each : ways) {
    curve line{each.name, each.part};
    const std::size_t most = quick ? std::size_t{1} << 12 : std::size_t{64} << 20;
    for (std::size_t bytes = 0; bytes <= most; bytes = bytes == 0 ? 64 : 4 * bytes) {
      const auto runs = runs_for(bytes, quick);
      line.points.push_back(point_of(static_cast<double>(bytes), in_own_process([&] { return each.run(runs, bytes); })));
    }
    made.push_back(std::move(line));
  }
  return made;
}

}  // namespace

std::vector<double> late_ones(const std::vector<double>& times, const std::vector<double>& one_of) {
  std::vector<double> late;
  for (const double each : one_of) late.push_back(percentile(times, 1 - 1 / each));
  return late;
}

curve curve_of_late_ones(const std::string& name, role part, const turns_of_part& found, const std::vector<double>& one_of) {
  curve made{name, part};
  for (std::size_t i = 0; i < one_of.size(); ++i) made.points.push_back(point_of(one_of[i], found.all(i)));
  return made;
}

plot call_by_size(bool quick) {
  return {.group = "messages",
          .name = "call_by_size",
          .title = "Bytes to another process and back, by their number",
          .how_to_read =
            "Lower is better. Each point is the median of one process pair; the band is the middle half of its runs. A bare "
            "exchange takes ten times as long where the system wakes the other process on a core that sleeps.",
          .x = {"size of the message", "bytes", true},
          .y = {"time until the answer", "us", true},
          .curves = curves_by_size(ways(), quick)};
}

plot floors_by_size(bool quick) {
  const auto within = [](int runs, std::size_t bytes) { return echo_calls(carrier::shared_memory, runs, bytes); };
  return {.group = "floors",
          .name = "floors_by_size",
          .title = "What the machine allows within itself, there and back",
          .how_to_read =
            "Lower is better. Where processes sleep, each of them has to be woken, which takes ten times as long on a core "
            "that sleeps than on their own.",
          .x = {"size of the message", "bytes", true},
          .y = {"time until the answer", "us", true},
          .curves = curves_by_size({{"a copy in one process (memcpy)", role::floor, copies},
                                    {"shared memory, never asleep", role::variant, spinning_exchanges},
                                    {"shared memory, asleep (futex)", role::variant, sleeping_exchanges},
                                    {"bare TCP", role::variant, tcp_exchanges},
                                    {"a call of troupe", role::troupe, within}},
                                   quick)};
}

plot calls_at_once(bool quick) {
  plot made{.group = "messages",
            .name = "calls_at_once",
            .title = "Small calls a second, by those that are under way at once",
            .how_to_read = "Higher is better. The answers of so many calls are awaited before the next ones begin.",
            .x = {"calls under way at once", "", true},
            .y = {"calls a second", "", true}};
  struct kind {
    const char* name;
    role part;
    carrier by;
  };
  for (const kind& each :
       {kind{"CAF's network", role::peer, carrier::caf}, kind{"TCP", role::variant, carrier::tcp},
        kind{"TLS", role::variant, carrier::tls}, kind{"within a machine", role::troupe, carrier::shared_memory}}) {
    curve line{each.name, each.part};
    for (const int at_once : quick ? std::vector{1, 16} : std::vector{1, 4, 16, 64, 256}) {
      const int runs = quick ? 3 : 4'000 / (at_once + 3);
      auto rates = in_own_process([&] { return calls_together({.by = each.by}, at_once, runs); });
      for (auto& us : rates) us = 1e6 / us;
      line.points.push_back(point_of(at_once, rates));
    }
    made.curves.push_back(std::move(line));
  }
  return made;
}

plot call_percentiles(bool quick) {
  plot made{.group = "messages",
            .name = "call_percentiles",
            .title = "200 bytes to another process and back: how long the slow ones take",
            .how_to_read = "Lower is better. At 100: 99 of 100 calls are answered within this time.",
            .x = {"calls of which one takes longer", "", true},
            .y = {"time until the answer", "us", true}};
  for (const auto& each : ways()) {
    const turns_of_part found(quick ? 1 : 3, [&] {
      return late_ones(each.run(quick ? 20 : 5'000, small_message), {2, 10, 100, 1'000});
    });
    made.curves.push_back(curve_of_late_ones(each.name, each.part, found, {2, 10, 100, 1'000}));
  }
  return made;
}

plot training_by_stages(const std::string& python, bool quick) {
  plot made{.group = "training",
            .name = "training_by_stages",
            .title = "Training of the example, by the stages of its model",
            .how_to_read = "Higher is better. More stages than cores cannot help.",
            .x = {"stages, each in a process of its own", ""},
            .y = {"tokens per second", ""}};
  curve alone{"one process, libtorch's engine and two threads", role::variant};
  curve ours{"troupe train", role::troupe};
  curve theirs{"PyTorch's pipelining over gloo", role::peer};
  const std::vector<int> stages = quick ? std::vector{1, 2} : std::vector{1, 2, 4};
  double of_one_process = 0;
  for (const int count : stages) {
    const training_size what{count, quick ? 4 : 15, quick};
    const bool compares = count == 2;  // a single process has as many threads as the training has stages
    const auto found = in_own_process([&] { return tokens_of_troupe(what, compares); });
    if (compares) of_one_process = found[1];
    ours.points.push_back({static_cast<double>(count), found[0]});
    if (!python.empty() && count > 1)
      theirs.points.push_back(
        {static_cast<double>(count), in_own_process([&] { return tokens_of_pipelining(what, python); })[0]});
  }
  for (const int count : stages) alone.points.push_back({static_cast<double>(count), of_one_process});
  for (auto* line : {&alone, &theirs, &ours})
    if (!line->points.empty()) made.curves.push_back(std::move(*line));
  made.default_x = 2;
  made.default_name = "troupe train --stages";
  return made;
}

}  // namespace troupe::bench
