// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <exception>
#include <thread>

#include <CLI/CLI.hpp>

#include "../support/json_file.hpp"
#include "scale_figures.hpp"

namespace {

using namespace troupe::bench;

struct choice {
  scale_effort how;
  double gbit = 10;
  std::uint64_t until = 0;
};

void add_options(CLI::App& options, choice& to) {
  auto& how = to.how;
  options.add_option("--nodes", how.nodes, "Sizes of the clusters in the tables")
    ->delimiter(',')
    ->check(CLI::Range(2, 1'000'000))
    ->capture_default_str();
  options.add_option("--shape", how.shapes, "Shapes of the passes")
    ->delimiter(',')
    ->check(CLI::IsMember(shape_names()))
    ->capture_default_str();
  options.add_option("--seed", how.seed, "Of the simulation; of the first cluster of the soak")->capture_default_str();
  options.add_option("--hours", how.hours, "Simulated hours of the soak")->capture_default_str();
  options.add_option("--hours-a-seed", how.hours_a_seed, "Simulated hours of each cluster of the soak")->capture_default_str();
  options.add_option("--until", to.until,
                     "Only lets the cluster of --seed run until this event, and prints what happened before it");
  options.add_option("--threads", how.threads, "Threads of the soak")->check(CLI::Range(1, 1024))->capture_default_str();
  options.add_option("--latency-ns", how.network.latency_ns, "Latency of a message")->capture_default_str();
  options.add_option("--jitter-ns", how.network.jitter_ns, "A message takes up to this much longer")->capture_default_str();
  options.add_option("--gbit", to.gbit, "Bandwidth of a node, in Gbit/s in each direction")->capture_default_str();
  options.add_option("--send-ns", how.network.send_ns, "CPU time of sending a message")->capture_default_str();
  options.add_option("--receive-ns", how.network.receive_ns, "CPU time of receiving a message")->capture_default_str();
  options.add_option("--function-ns", how.pass.function_ns, "CPU time of a function of a pass")->capture_default_str();
  options.add_option("--payload", how.pass.payload_bytes, "Bytes of gradients in a message")->capture_default_str();
}

/// Runs one cluster until an event, and prints what happened before it.
int replay(const choice& from) {
  auto report = soak(from.how.seed).run(from.how.hours, from.until);
  if (report.wrong.empty()) report.wrong = "no promise is broken up to here";
  std::printf("%s\n", report.text().c_str());
  return 0;
}

int measure_scale(choice& from, const bench_choice& asked) {
  auto& how = from.how;
  how.network.bytes_per_second = from.gbit / 8 * 1e9;
  if (from.until != 0) return replay(from);
  if (asked.quick) {  // 400 nodes at most and 10 hours
    how.quick = true;
    how.nodes = {100, 400};
    how.hours = std::min(how.hours, 10.0);
    how.hours_a_seed = 1;
  }
  how.tell = [](const std::string& what) { std::fprintf(stderr, "-- %s\n", what.c_str()); };
  auto chosen = scale_rows();
  keep_only(asked.only, chosen);
  scale_figures figures(how);
  measured found;
  std::string broken;
  for (const auto& each : chosen) {
    const bool is_pass = each.name == "scale_busiest" || each.name == "scale_weight";
    for (const auto nodes : how.nodes) {
      if (each.name == "scale_membership") figures.membership(nodes);
      for (const auto& shape : how.shapes)
        if (is_pass && scale_figures::too_large(shape, nodes).empty()) figures.pass(shape, nodes);
    }
    try {
      found.rows.push_back(labelled(each.measure(figures), each));
    } catch (const std::exception& error) {
      broken = each.name + ": " + error.what();
    }
  }
  found.plots = plots_of(figures);
  std::fputs(figures.text().c_str(), stdout);
  write_measured(found, asked.folder, "scale", "100 nodes");
  write_text(std::filesystem::path(asked.folder) / "scale.tables.json", figures.json());
  if (!broken.empty()) throw std::runtime_error(broken);
  return 0;
}

constexpr const char* what_it_does =
  "Simulates clusters of many nodes on one clock. Each node runs troupe's own decisions: those of a distributed pass "
  "(engine/protocol)\n"
  "and those of membership. The network and its costs are simulated (docs/scale.md).";
constexpr const char* examples =
  "Examples:\n"
  "  scale_model --nodes 100,1000 --shape tree,pipeline --only scale_busiest scale_weight\n"
  "  scale_model --only soak_hours --hours 100000\n"
  "  scale_model --seed 17 --until 410377     what led to a broken promise\n\n"
  "10,000 nodes take half a minute for the passes, a minute for membership, and 8 GB of memory.";

}  // namespace

int main(int argc, char** argv) {
  choice chosen;
  chosen.how.threads = std::max(1U, std::thread::hardware_concurrency());
  return run({.name = "scale_model",
              .what_it_does = what_it_does,
              .footer = examples,
              .files = "scale.json, scale.txt, scale.curves.json and scale.tables.json",
              .run = [&](const bench_choice& asked) { return measure_scale(chosen, asked); },
              .add_options = [&](CLI::App& options) { add_options(options, chosen); }},
             argc, argv);
}
