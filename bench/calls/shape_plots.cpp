// SPDX-License-Identifier: BSD-3-Clause
// Passes by the shape of their calls.

#include "../support/real_cluster.hpp"
#include "distributed.hpp"
#include "suite.hpp"

namespace troupe::bench {

namespace {

using us = std::chrono::microseconds;

constexpr us usual_function{5'000};
constexpr std::size_t stages_of_pipeline = 4;

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

/// A curve for each shape. `in_one_process`: the nodes are those of one process, else each has its own. One cluster runs all shapes: to
/// make 64 nodes and to end them takes longer than the passes. All to all is the last one, because it leaves the most threads.
plot by_shapes(const std::string& title, const std::string& how_to_read, bool quick, us function, int runs,
               bool in_one_process = false) {
  plot made{title,
            how_to_read,
            {in_one_process ? "nodes of one process" : "processes", "", true},
            {"time of the backward pass", "ms", true}};
  if (quick) runs = 1;
  std::vector<std::size_t> counts{2, 4, 8, 16};
  if (in_one_process) counts.insert(counts.end(), {32, 64});
  if (quick) counts = {2};
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

plot shapes_without_work(bool quick) {
  return by_shapes("Backward over processes, by the shape of the calls",
                   "Lower is better: the time is that of messages. All processes share the cores of this machine.", quick,
                   us(0), 60);
}

plot shapes_at_work(bool quick) {
  return by_shapes("Backward over processes whose functions wait for 5 ms (weak scaling)",
                   "Lower is better. A pipeline of n processes has 2n − 1 waits one after the other, a ring n + 1; the other "
                   "shapes have 3 to 6, however many processes there are.",
                   quick, usual_function, 5);
}

plot shapes_in_a_process(bool quick) {
  return by_shapes("Backward over nodes of one process, by the shape of the calls",
                   "Lower is better: the time is that of messages. All to all has as many messages as nodes times nodes, and a "
                   "thread for each.",
                   quick, us(0), 5, true);
}

plot work_spread_over_processes(bool quick) {
  const auto workers = quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 2, 4, 8, 15};
  const auto share_of = [](std::size_t count) { return us(120'000 / static_cast<std::int64_t>(count)); };
  return {"A wait of 120 ms, spread over processes (strong scaling)",
          "Lower is better. A server that does not wait calls all other processes at once; each waits for its share.",
          {"processes that share the wait", "", true},
          {"time of the backward pass", "ms", true},
          {curve_over(workers, "the share alone", role::floor,
                      [&](std::size_t count) {
                        return point{static_cast<double>(count), static_cast<double>(share_of(count).count()) / 1e3};
                      }),
           curve_over(workers, "troupe", role::troupe, [&](std::size_t count) {
             return in_own_process([&] {
               real_cluster cluster(count + 1);
               return passes(cluster, "parameter_server", count + 1, share_of(count), quick ? 1 : 5, us(0));
             });
           })}};
}

plot nodes_of_a_process(bool quick) {
  const auto measure = [=](int nodes) {
    return in_own_process([=] {
      std::vector<double> turns;
      for (int turn = 0; turn < (quick ? 1 : 5); ++turn) turns.push_back(cost_of_nodes(nodes, quick ? 2 : 1'000 / nodes));
      return turns;
    });
  };
  return {"Forward and backward over a chain of nodes of one process",
          "Lower is better. A flat line means that a node costs as much among many as among few. The rows nodes_N run beside "
          "other processes.",
          {"nodes", "", true},
          {"time by the number of nodes", "us"},
          {curve_over(quick ? std::vector{2, 4} : std::vector{2, 4, 8, 16, 32, 64}, "troupe", role::troupe, measure)}};
}

plot bubbles_by_micro_batches(bool quick) {
  const double before = stages_of_pipeline - 1;
  const auto counts = quick ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{1, 2, 4, 8, 16};
  const auto measured = [=](const char* name, role as, bool own_contexts) {
    return curve_over(counts, name, as, [=](std::int64_t batches) {
      return in_own_process([=] {
        real_cluster cluster(stages_of_pipeline + 1);
        const auto slept = real_cluster::slept_ms(usual_function);
        std::vector<double> shares;
        for (int i = -1; i < (quick ? 1 : 5); ++i) {
          const auto taken = cluster.pipeline_ms(batches, usual_function, own_contexts);
          if (i >= 0) shares.push_back(std::max(0.0, 1 - static_cast<double>(batches) * slept / taken));
        }
        return shares;
      });
    });
  };
  const auto formula = [=](std::int64_t batches) {
    const auto m = static_cast<double>(batches);
    return point{m, before / (m + before)};
  };
  return {
    "A pipeline of 4 stages: the share of time in which a stage idles",
    "Lower is better. The formula is that of filling and draining: (s − 1) / (m + s − 1).",
    {"micro-batches (m), each of 5 ms in a stage", "", true},
    {"share of time", ""},
    {curve_over(counts, "the formula", role::floor, formula), measured("micro-batches in one context", role::variant, false),
     measured("a context for each micro-batch", role::troupe, true)}};
}

}  // namespace

std::vector<plot_definition> shape_plots() {
  return plots_of_group("shape", {{"shapes_without_work", shapes_without_work},
                                  {"shapes_in_a_process", shapes_in_a_process},
                                  {"shapes_at_work", shapes_at_work},
                                  {"work_spread_over_processes", work_spread_over_processes},
                                  {"nodes_of_a_process", nodes_of_a_process},
                                  {"bubbles_by_micro_batches", bubbles_by_micro_batches}});
}

std::vector<double> all_to_all_ms(std::size_t nodes, int runs) {
  return passes(*real_cluster::in_this_process(nodes), "all_to_all", nodes, us(0), runs);
}

}  // namespace troupe::bench
