// SPDX-License-Identifier: BSD-3-Clause
#include "suite_plots.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "suite_parts.hpp"
#include "suite_training.hpp"

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
  if (has_grpc()) all.insert(all.begin() + 2, {"a call of gRPC", role::variant, grpc_calls});
  return all;
}

/// As many as take about a second.
int runs_for(std::size_t bytes, bool quick) {
  if (quick) return 3;
  return std::clamp(static_cast<int>((std::size_t{64} << 20) / (bytes + 1)), 8, 2'000);
}

point point_of(double x, const std::vector<double>& runs) {
  const auto middle = percentile(runs, 0.5);
  return {x, middle, spread_of(runs, middle)};
}

}  // namespace

double percentile(std::vector<double> values, double share) {
  const auto place = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place), values.end());
  return values[place];
}

plot call_by_size(bool quick) {
  plot made{
    .group = "messages",
    .name = "call_by_size",
    .title = "Bytes to another process and back, by their number",
    .how_to_read = "Lower is better. Each point is the median of one process pair; the band is the middle half of its runs.",
    .x = {"size of the message", "bytes", true},
    .y = {"time until the answer", "us", true}};
  for (const auto& each : ways()) {
    curve line{each.name, each.part};
    const std::size_t most = quick ? std::size_t{1} << 12 : std::size_t{64} << 20;
    for (std::size_t bytes = 0; bytes <= most; bytes = bytes == 0 ? 64 : 4 * bytes) {
      const auto runs = runs_for(bytes, quick);
      line.points.push_back(point_of(static_cast<double>(bytes), in_own_process([&] { return each.run(runs, bytes); })));
    }
    made.curves.push_back(std::move(line));
  }
  return made;
}

plot call_percentiles(bool quick) {
  plot made{.group = "messages",
            .name = "call_percentiles",
            .title = "200 bytes to another process and back: how long the slow ones take",
            .how_to_read = "Lower is better. At 1 in 100 is the time that 99 of 100 calls keep.",
            .x = {"calls of which one takes longer", "", true},
            .y = {"time until the answer", "us", true}};
  for (const auto& each : ways()) {
    curve line{each.name, each.part};
    const auto runs = in_own_process([&] { return each.run(quick ? 20 : 10'000, small_message); });
    for (const double one_of : {2, 10, 100, 1'000}) line.points.push_back({one_of, percentile(runs, 1 - 1 / one_of)});
    made.curves.push_back(std::move(line));
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
  curve alone{"one process, libtorch's engine", role::floor};
  curve ours{"troupe train", role::troupe};
  curve theirs{"PyTorch's pipelining over gloo", role::peer};
  const std::vector<int> stages = quick ? std::vector{1, 2} : std::vector{1, 2, 4};
  for (const int count : stages) {
    const training_size what{count, quick ? 4 : 30, quick};
    const auto found = in_own_process([&] { return tokens_of_troupe(what, true); });
    ours.points.push_back({static_cast<double>(count), found[0]});
    alone.points.push_back({static_cast<double>(count), found[1]});
    if (!python.empty() && count > 1)
      theirs.points.push_back(
        {static_cast<double>(count), in_own_process([&] { return tokens_of_pipelining(what, python); })[0]});
  }
  // One process has no stages: the best of its turns counts for all.
  const auto best =
    std::max_element(alone.points.begin(), alone.points.end(), [](const auto& a, const auto& b) { return a.y < b.y; })->y;
  for (auto& each : alone.points) each.y = best;
  for (auto* line : {&alone, &theirs, &ours})
    if (!line->points.empty()) made.curves.push_back(std::move(*line));
  made.default_x = 2;
  made.default_name = "troupe train --stages";
  return made;
}

}  // namespace troupe::bench
