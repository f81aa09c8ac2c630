// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "../support/row_choice.hpp"
#include "scale_figures.hpp"
#include "scale_plots.hpp"

namespace {

using namespace troupe::bench;

struct choice {
  scale_effort how;
  std::vector<std::string> only;
  std::string folder = "out/bench";
  std::uint64_t until = 0;
};

struct named {
  std::string name;
};

void add_options(CLI::App& options, choice& to, double& gbit) {
  auto& how = to.how;
  options.add_option("--only", to.only, "Names of the rows to measure (default: all)");
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
  options.add_option("--gbit", gbit, "Bandwidth of a node, in Gbit/s in each direction")->capture_default_str();
  options.add_option("--send-ns", how.network.send_ns, "CPU time of sending a message")->capture_default_str();
  options.add_option("--receive-ns", how.network.receive_ns, "CPU time of receiving a message")->capture_default_str();
  options.add_option("--function-ns", how.pass.function_ns, "CPU time of a function of a pass")->capture_default_str();
  options.add_option("--payload", how.pass.payload_bytes, "Bytes of gradients in a message")->capture_default_str();
  options.add_option("--out", to.folder, "Folder for scale.json, scale.txt, scale.curves.json and scale.tables.json")
    ->capture_default_str();
  options.add_flag("--quick", how.quick, "400 nodes at most and 10 hours: checks that it works");
}

void write_tables(const std::string& folder, const scale_figures& figures) {
  const auto file = std::filesystem::path(folder) / "scale.tables.json";
  std::ofstream out(file, std::ios::trunc);
  out << figures.json() << std::flush;
  if (!out)
    throw std::runtime_error("cannot write '" + file.string() + "'; is its folder writable, and is there room on the disk?");
}

/// Runs one cluster until an event, and prints what happened before it.
int replay(const choice& from) {
  auto report = soak(from.how.seed).run(from.how.hours, from.until);
  if (report.wrong.empty()) report.wrong = "no promise is broken up to here";
  std::printf("%s\n", report.text().c_str());
  return 0;
}

int measure(choice& from) {
  auto& how = from.how;
  if (how.quick) {
    how.nodes = {100, 400};
    how.hours = std::min(how.hours, 10.0);
    how.hours_a_seed = 1;
  }
  how.tell = [](const std::string& what) { std::fprintf(stderr, "-- %s\n", what.c_str()); };
  std::vector<named> chosen;
  for (const auto& name : scale_row_names()) chosen.push_back({name});
  keep_only(chosen, from.only);
  scale_figures figures(how);
  std::vector<row> rows;
  std::string broken;
  for (const auto& each : chosen) {
    const bool is_pass = each.name == "scale_busiest" || each.name == "scale_purse";
    for (const auto nodes : how.nodes) {
      if (each.name == "scale_membership") figures.membership(nodes);
      for (const auto& shape : how.shapes)
        if (is_pass && scale_figures::too_large(shape, nodes).empty()) figures.pass(shape, nodes);
    }
    try {
      rows.push_back(scale_row(each.name, figures));
    } catch (const std::exception& error) {
      broken = each.name + ": " + error.what();
    }
  }
  std::fputs(figures.text().c_str(), stdout);
  std::fputs(table_of(rows, "100 nodes").c_str(), stdout);
  write_report(from.folder, "scale", rows, "100 nodes");
  write_curves(from.folder, "scale", plots_of(figures));
  write_tables(from.folder, figures);
  std::printf("written to %s/scale.json, scale.txt, scale.curves.json and scale.tables.json\n", from.folder.c_str());
  if (!broken.empty()) throw std::runtime_error(broken);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App options(
    "Simulates clusters of many nodes on one clock. Each node runs troupe's own decisions: those of a distributed pass "
    "(engine/protocol)\n"
    "and those of membership. The network and its costs are simulated (docs/scale.md).",
    "scale_model");
  options.footer(
    "Examples:\n"
    "  scale_model --nodes 100,1000 --shape tree,pipeline --only scale_busiest scale_purse\n"
    "  scale_model --only soak_hours --hours 100000\n"
    "  scale_model --seed 17 --until 410377     what led to a broken promise\n\n"
    "10,000 nodes take half a minute for the passes, a minute for membership, and 8 GB of memory.");
  choice chosen;
  chosen.how.threads = std::max(1U, std::thread::hardware_concurrency());
  double gbit = 10;
  add_options(options, chosen, gbit);
  CLI11_PARSE(options, argc, argv);
  chosen.how.network.bytes_per_second = gbit / 8 * 1e9;
  return chosen.until != 0 ? replay(chosen) : measure(chosen);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scale_model: %s\n", error.what());
  } catch (...) {
    std::fputs("scale_model: an exception of an unknown type\n", stderr);
  }
  return 1;
}
