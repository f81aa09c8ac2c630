// SPDX-License-Identifier: BSD-3-Clause
#include "shape_plots.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../support/real_cluster.hpp"
#include "exchanges.hpp"
#include "message_plots.hpp"
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
std::vector<double> passes(real_cluster& cluster, const std::string& shape, std::size_t nodes, us function, int runs,
                           std::optional<us> of_node_0 = {}) {
  std::vector<double> taken;
  for (int i = -2; i < runs; ++i) {
    const auto time = cluster.pass_ms(shape, nodes, function, of_node_0);
    if (i >= 0) taken.push_back(time);
  }
  return taken;
}

std::vector<std::size_t> counts_of_processes(bool quick) {
  return quick ? std::vector<std::size_t>{2} : std::vector<std::size_t>{2, 4, 8, 16};
}

/// A curve for each shape. `in_one_process`: the nodes are those of one process, else each has its own. One cluster runs all shapes: to
/// make 64 nodes and to end them takes longer than the passes. All to all is the last one, because it leaves the most threads.
plot by_shapes(bool quick, us function, int runs, bool in_one_process = false) {
  plot made{.group = "shape",
            .x = {in_one_process ? "nodes of one process" : "processes", "", true},
            .y = {"time of the backward pass", "ms", true}};
  if (quick) runs = 1;
  auto counts = counts_of_processes(quick);
  if (in_one_process && !quick) counts = {2, 4, 8, 16, 32, 64};
  const std::vector<std::string> shapes{"pipeline", "tree", "parameter_server", "ring", "all_to_all"};
  for (const auto& shape : shapes) made.curves.push_back({words_of(shape), shape == "pipeline" ? role::troupe : role::variant});
  for (const auto nodes : counts) {
    const auto taken = in_own_process([&] {
      const auto cluster = in_one_process ? real_cluster::in_this_process(nodes) : std::make_unique<real_cluster>(nodes);
      std::vector<double> all;
      for (const auto& shape : shapes) {
        const auto more = passes(*cluster, shape, nodes, function, runs);
        all.insert(all.end(), more.begin(), more.end());
      }
      return all;
    });
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto begin = taken.begin() + static_cast<std::ptrdiff_t>(i) * runs;
      made.curves[i].points.push_back(point_of(static_cast<double>(nodes), {begin, begin + runs}));
    }
  }
  return made;
}

}  // namespace

plot shapes_without_work(bool quick) {
  auto made = by_shapes(quick, us(0), 60);
  made.name = "shapes_without_work";
  made.title = "Backward over processes, by the shape of the calls";
  made.how_to_read = "Lower is better: the time is that of messages. All processes share the cores of this machine.";
  return made;
}

plot shapes_at_work(bool quick) {
  auto made = by_shapes(quick, usual_function, 5);
  made.name = "shapes_at_work";
  made.title = "Backward over processes whose functions wait for 5 ms (weak scaling)";
  made.how_to_read =
    "Lower is better. A pipeline of n processes has 2n − 1 waits one after the other, a ring n + 1; the other shapes have 3 to "
    "6, "
    "however many processes there are.";
  return made;
}

plot shapes_in_a_process(bool quick) {
  auto made = by_shapes(quick, us(0), 9, true);
  made.name = "shapes_in_a_process";
  made.title = "Backward over nodes of one process, by the shape of the calls";
  made.how_to_read =
    "Lower is better: the time is that of messages. All to all has as many messages as nodes times nodes, and a thread for "
    "each.";
  return made;
}

plot work_spread_over_processes(bool quick) {
  plot made{
    .group = "shape",
    .name = "work_spread_over_processes",
    .title = "A wait of 120 ms, spread over processes (strong scaling)",
    .how_to_read = "Lower is better. A server that does not wait calls all other processes at once; each waits for its share.",
    .x = {"processes that share the wait", "", true},
    .y = {"time of the backward pass", "ms", true}};
  constexpr std::int64_t whole_us = 120'000;
  curve ideal{"the share alone", role::floor};
  curve ours{"troupe", role::troupe};
  for (const std::size_t workers : quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 2, 4, 8, 15}) {
    const us share(whole_us / static_cast<std::int64_t>(workers));
    const auto found = in_own_process([&] {
      real_cluster cluster(workers + 1);
      return passes(cluster, "parameter_server", workers + 1, share, quick ? 1 : 5, us(0));
    });
    ours.points.push_back(point_of(static_cast<double>(workers), found));
    ideal.points.push_back({static_cast<double>(workers), static_cast<double>(share.count()) / 1e3});
  }
  made.curves = {std::move(ideal), std::move(ours)};
  return made;
}

plot nodes_of_a_process(bool quick) {
  plot made{.group = "shape",
            .name = "nodes_of_a_process",
            .title = "Forward and backward over a chain of nodes of one process",
            .how_to_read =
              "Lower is better. A flat line means that a node costs as much among many as among few. The rows nodes_N run "
              "beside other processes.",
            .x = {"nodes", "", true},
            .y = {"time by the number of nodes", "us"}};
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
    const auto idle = [&](bool own_contexts) {
      return in_own_process([&] {
        real_cluster cluster(stages_of_pipeline + 1);
        const auto slept = real_cluster::slept_ms(usual_function);
        std::vector<double> shares;
        for (int i = -1; i < (quick ? 1 : 5); ++i) {
          const auto taken = cluster.pipeline_ms(batches, usual_function, own_contexts);
          if (i >= 0) shares.push_back(std::max(0.0, 1 - static_cast<double>(batches) * slept / taken));
        }
        return shares;
      });
    };
    const auto m = static_cast<double>(batches);
    formula.points.push_back({m, before / (m + before)});
    one_context.points.push_back(point_of(m, idle(false)));
    own_contexts.points.push_back(point_of(m, idle(true)));
  }
  made.curves = {std::move(formula), std::move(one_context), std::move(own_contexts)};
  return made;
}

}  // namespace troupe::bench
