// SPDX-License-Identifier: BSD-3-Clause
#include "suite_shapes.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scale/real_cluster.hpp"
#include "suite_parts.hpp"
#include "suite_plots.hpp"
#include "troupe_rpc.hpp"

namespace troupe::bench {

namespace {

using us = std::chrono::microseconds;

constexpr us usual_function{5'000};
constexpr std::size_t stages_of_pipeline = 4;

std::string words_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// Milliseconds of passes over a shape in processes. The first passes do not count.
std::vector<double> passes(const std::string& shape, std::size_t nodes, us function, int runs) {
  real_cluster cluster(nodes);
  std::vector<double> taken;
  for (int i = -2; i < runs; ++i) {
    const auto time = cluster.pass_ms(shape, nodes, function);
    if (i >= 0) taken.push_back(time);
  }
  return taken;
}

std::vector<std::size_t> counts_of_processes(bool quick) {
  return quick ? std::vector<std::size_t>{2} : std::vector<std::size_t>{2, 4, 8, 16};
}

point point_of(double x, const std::vector<double>& runs) {
  const auto middle = percentile(runs, 0.5);
  return {x, middle, spread_of(runs, middle)};
}

plot by_shapes(bool quick, us function, int runs) {
  plot made{.group = "shape", .x = {"processes", "", true}, .y = {"time of a pass", "ms", true}};
  for (const std::string shape : {"pipeline", "tree", "parameter_server", "all_to_all", "ring"}) {
    curve one{words_of(shape), shape == "pipeline" ? role::troupe : role::variant};
    for (const auto nodes : counts_of_processes(quick))
      one.points.push_back(
        point_of(static_cast<double>(nodes), in_own_process([&] { return passes(shape, nodes, function, quick ? 1 : runs); })));
    made.curves.push_back(std::move(one));
  }
  return made;
}

}  // namespace

plot shapes_without_work(bool quick) {
  auto made = by_shapes(quick, us(0), 60);
  made.name = "shapes_without_work";
  made.title = "A pass over processes, by the shape of its calls";
  made.how_to_read = "Lower is better: the time is that of messages. All processes share the cores of this machine.";
  return made;
}

plot shapes_at_work(bool quick) {
  auto made = by_shapes(quick, usual_function, 5);
  made.name = "shapes_at_work";
  made.title = "The same, where each function waits for 5 ms (weak scaling)";
  made.how_to_read = "Lower is better. A pipeline and a ring have as many steps as processes; the others should stay flat.";
  return made;
}

plot work_spread_over_processes(bool quick) {
  plot made{.group = "shape",
            .name = "work_spread_over_processes",
            .title = "A wait of 128 ms, spread over processes (strong scaling)",
            .how_to_read = "Lower is better. A server calls all other processes at once; each waits for its share.",
            .x = {"processes that share the wait", "", true},
            .y = {"time of a pass", "ms", true}};
  constexpr double whole_ms = 128;
  curve ideal{"the share alone", role::floor};
  curve ours{"troupe", role::troupe};
  for (const std::size_t workers : quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 2, 4, 8, 15}) {
    // The server has two functions as well, one before and one after those of the others.
    const auto function = us(static_cast<std::int64_t>(1e3 * whole_ms / static_cast<double>(workers) / 3));
    const auto found = in_own_process([&] { return passes("parameter_server", workers + 1, function, quick ? 1 : 4); });
    ours.points.push_back(point_of(static_cast<double>(workers), found));
    ideal.points.push_back({static_cast<double>(workers), 3e-3 * static_cast<double>(function.count())});
  }
  made.curves = {std::move(ideal), std::move(ours)};
  return made;
}

plot nodes_of_a_process(bool quick) {
  plot made{.group = "shape",
            .name = "nodes_of_a_process",
            .title = "A pass over nodes of one process",
            .how_to_read = "Lower is better. A flat line means that a node costs as much among many as among few.",
            .x = {"nodes", "", true},
            .y = {"time of a pass, by node", "us"}};
  curve one{"troupe", role::troupe};
  for (const int nodes : quick ? std::vector{2, 4} : std::vector{2, 4, 8, 16, 32, 64}) {
    const auto found = in_own_process([&] {
      std::vector<double> turns;
      for (int turn = 0; turn < (quick ? 1 : 5); ++turn) turns.push_back(cost_of_nodes(nodes, quick ? 2 : 1'000 / nodes));
      return turns;
    });
    one.points.push_back(point_of(nodes, found));
  }
  made.curves = {std::move(one)};
  return made;
}

plot bubbles_by_micro_batches(bool quick) {
  plot made{.group = "shape",
            .name = "bubbles_by_micro_batches",
            .title = "A pipeline of 4 stages: the share of time in which a stage idles",
            .how_to_read = "Lower is better. The formula is that of filling and draining: (s − 1) / (m + s − 1).",
            .x = {"micro-batches (m), each of 5 ms in a stage", "", true},
            .y = {"share of time", ""}};
  curve formula{"the formula", role::floor};
  curve one_context{"micro-batches in one context", role::variant};
  curve own_contexts{"a context for each micro-batch", role::troupe};
  const double before = stages_of_pipeline - 1;
  for (const std::int64_t batches : quick ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{1, 2, 4, 8, 16}) {
    const auto found = in_own_process([&] {
      real_cluster cluster(stages_of_pipeline + 1);
      const auto slept = real_cluster::slept_ms(usual_function);
      cluster.pipeline_ms(batches, usual_function, false);
      const auto idle = [&](bool each) {
        return 1 - static_cast<double>(batches) * slept / cluster.pipeline_ms(batches, usual_function, each);
      };
      return std::vector{idle(false), idle(true)};
    });
    const auto m = static_cast<double>(batches);
    formula.points.push_back({m, before / (m + before)});
    one_context.points.push_back({m, std::max(0.0, found[0])});
    own_contexts.points.push_back({m, std::max(0.0, found[1])});
  }
  made.curves = {std::move(formula), std::move(one_context), std::move(own_contexts)};
  return made;
}

}  // namespace troupe::bench
