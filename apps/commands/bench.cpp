// SPDX-License-Identifier: BSD-3-Clause
#include "apps/commands/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <troupe/actors/certificates/kit.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>

#include "apps/charlm/cluster.hpp"
#include "apps/charlm/figures.hpp"
#include "apps/command_line.hpp"
#include "apps/log_options.hpp"
#include "apps/probe/probe_module.hpp"
#include "apps/proof_options.hpp"
#include "apps/signals.hpp"
#include "apps/text_table.hpp"

namespace troupe::apps {

namespace {

using charlm::fixed;
using charlm::grouped;

constexpr std::size_t most_nodes_for_all_ways = 12;  // 12 nodes have 132 ways
constexpr double time_to_compute = 0.3;              // seconds
constexpr double far_below = 3;                      // a way with a third of the usual rate is worth a line

struct bench_options {
  std::string cluster;
  std::string join;
  std::string host = "127.0.0.1";
  std::string advertise;
  double seconds = 1;
  bool json = false;
  proof_options proof;
  log_options log{severity::warn};
};

struct measured_way {
  std::string from;
  std::string to;
  std::string transport;
  std::optional<probe::link> gives;
  std::string problem;
};

struct measured_node {
  std::string name;
  std::optional<double> gigaflops;
  std::string problem;
};

/// From each node to each other one; among more nodes than `most_nodes_for_all_ways`, to the next in the order of the names and from this
/// command's node to each.
std::vector<measured_way> ways_between(const std::string& here, const std::vector<std::string>& nodes) {
  std::vector<measured_way> all;
  for (const auto& node : nodes) all.push_back({here, node, {}, {}, {}});
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t j = 0; j < nodes.size(); ++j)
      if (i != j && (nodes.size() <= most_nodes_for_all_ways || j == (i + 1) % nodes.size()))
        all.push_back({nodes[i], nodes[j], {}, {}, {}});
  return all;
}

class cluster_bench {
 public:
  cluster_bench(const bench_options& options, const stop_signal& stop)
      : options_(options),
        stop_(stop),
        here_(settings_of(options)),
        nodes_(options.cluster.empty() ? charlm::stage_nodes::join(here_, options.join, {})
                                       : charlm::stage_nodes::join(here_, cluster_file::read(options.cluster))) {}

  /// Measures everything, or until a stop is asked for.
  void run() {
    ways_ = ways_between(here_.name(), nodes_.names());
    const auto all = nodes_.names().size() + ways_.size();
    const auto ahead = static_cast<double>(ways_.size()) * (options_.seconds + 0.2);
    std::fprintf(stderr, "%zu nodes, %zu ways between them; this takes about %s\n", nodes_.names().size(), ways_.size(),
                 charlm::clock_text(ahead).c_str());
    std::size_t done = 0;
    for (const auto& name : nodes_.names()) {
      if (stop_.requested()) return;
      std::fprintf(stderr, "%zu of %zu: %s computes\n", ++done, all, name.c_str());
      measured_nodes_.push_back(compute(name));
    }
    for (auto& way : ways_) {
      if (stop_.requested()) return;
      std::fprintf(stderr, "%zu of %zu: %s -> %s\n", ++done, all, way.from.c_str(), way.to.c_str());
      measure(way);
    }
  }

  bool complete() const {
    const auto has_problem = [](const auto& each) { return !each.problem.empty(); };
    return !stop_.requested() && std::none_of(ways_.begin(), ways_.end(), has_problem) &&
           std::none_of(measured_nodes_.begin(), measured_nodes_.end(), has_problem);
  }

  std::string json() const;
  std::string tables() const;

 private:
  static settings settings_of(const bench_options& options) {
    settings result;
    result.name = "bench";
    result.host = options.host;
    result.advertise = options.advertise;
    options.proof.apply_to(result);
    if (!result.certificates.empty()) result.name = certificates::read_kit(result.certificates).identity.node;
    options.log.apply_to(result);
    result.prepare = probe::add_type;
    return result;
  }

  measured_node compute(const std::string& name) {
    measured_node result{name, {}, {}};
    try {
      const auto there = here_.peer(name, probe::time_to_find).create(probe::type);
      result.gigaflops = get<double>(there.call("compute", {}, {{"seconds", time_to_compute}}).get().values, "gigaflops");
    } catch (const std::exception& failed) {
      result.problem = one_line(failed);
    }
    return result;
  }

  void measure(measured_way& way) {
    try {
      const std::chrono::duration<double> length(options_.seconds);
      if (way.from == here_.name()) {
        way.gives = probe::measure(here_, here_.peer(way.to, probe::time_to_find), length);
        way.transport = transport(here_.status(), way.to);
        return;
      }
      const auto from = here_.peer(way.from, probe::time_to_find);
      const auto there = from.create(probe::type);
      way.gives = probe::link_of(there.call("measure", {}, {{"peer", way.to}, {"seconds", options_.seconds}}).get().values);
      way.transport = transport(from.status(), way.to);
    } catch (const std::exception& failed) {
      way.problem = one_line(failed);
    }
  }

  static std::string transport(const node_status& of, const std::string& to) {
    for (const auto& each : of.peers)
      if (each.up && each.who.name == to) return each.transport;
    return {};
  }

  std::string remarks() const;

  const bench_options& options_;
  const stop_signal& stop_;
  node here_;
  charlm::stage_nodes nodes_;
  std::vector<measured_node> measured_nodes_;
  std::vector<measured_way> ways_;
};

std::string cluster_bench::json() const {
  nlohmann::ordered_json result{{"nodes", nlohmann::ordered_json::array()}, {"ways", nlohmann::ordered_json::array()}};
  for (const auto& each : measured_nodes_) {
    nlohmann::ordered_json one{{"name", each.name}};
    if (each.gigaflops) one["gigaflops"] = *each.gigaflops;
    if (!each.problem.empty()) one["problem"] = each.problem;
    result["nodes"].push_back(std::move(one));
  }
  for (const auto& each : ways_) {
    if (!each.gives && each.problem.empty()) continue;  // stopped before
    nlohmann::ordered_json one{{"from", each.from}, {"to", each.to}, {"transport", each.transport}};
    if (each.gives) {
      one["call_us"] = each.gives->call_us;
      one["call_p99_us"] = each.gives->call_p99_us;
      one["call_p999_us"] = each.gives->call_p999_us;
      one["pass_us"] = each.gives->pass_us;
      one["mib_per_s"] = each.gives->mib_per_s;
    } else {
      one["problem"] = each.problem;
    }
    result["ways"].push_back(std::move(one));
  }
  return result.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string cluster_bench::tables() const {
  std::vector<std::vector<std::string>> nodes{{"node", "GFLOP/s"}};
  std::vector<std::vector<std::string>> ways{{"from", "to", "transport", "call, us", "99%", "99.9%", "pass, us", "MiB/s"}};
  std::string problems;
  for (const auto& each : measured_nodes_) {
    nodes.push_back({each.name, each.gigaflops ? fixed(*each.gigaflops, 1) : "-"});
    if (!each.problem.empty()) problems += each.name + " could not compute: " + each.problem + "\n";
  }
  for (const auto& each : ways_) {
    if (!each.gives && each.problem.empty()) continue;
    std::vector<std::string> row{each.from, each.to, each.transport.empty() ? "-" : each.transport};
    if (each.gives) {
      for (const double us : {each.gives->call_us, each.gives->call_p99_us, each.gives->call_p999_us, each.gives->pass_us})
        row.push_back(grouped(us));
      row.push_back(grouped(each.gives->mib_per_s));
    } else {
      row.insert(row.end(), 5, "-");
      problems += each.from + " -> " + each.to + ": " + each.problem + "\n";
    }
    ways.push_back(std::move(row));
  }
  return text_table(nodes, 1) + "\n" + text_table(ways, 3) + remarks() + (problems.empty() ? "" : "\n" + problems);
}

/// A line for each way that gives much less than the usual one.
std::string cluster_bench::remarks() const {
  std::vector<double> rates;
  std::vector<double> calls;
  for (const auto& each : ways_)
    if (each.gives) {
      rates.push_back(each.gives->mib_per_s);
      calls.push_back(each.gives->call_us);
    }
  if (rates.size() < 3) return {};
  const auto usual_rate = probe::percentile(rates, 0.5);
  const auto usual_call = probe::percentile(calls, 0.5);
  std::string text;
  for (const auto& each : ways_) {
    if (!each.gives) continue;
    const auto slower = usual_rate / each.gives->mib_per_s;
    const auto later = each.gives->call_us / usual_call;
    if (slower >= far_below)
      text += each.from + " -> " + each.to + " carries " + fixed(slower, 1) + " times less than the middle one of the ways\n";
    if (later >= far_below)
      text += each.from + " -> " + each.to + " answers " + fixed(later, 1) + " times later than the middle one of the ways\n";
  }
  return text.empty() ? text : "\n" + text;
}

void run_bench(const bench_options& options) {
  stop_signal stop;
  cluster_bench bench(options, stop);
  bench.run();
  std::printf("%s", (options.json ? bench.json() : bench.tables()).c_str());
  std::fflush(stdout);
  if (!bench.complete()) throw CLI::RuntimeError(1);
}

constexpr const char* bench_examples =
  R"(The nodes have to run; `troupe node` and `troupe launch` start nodes that can be measured. One way is measured at a time, so
other work on the cluster shows in the figures, and the command in the work. With more than 12 nodes each node is
measured to the next one alone, in the order of the file or of the names.

Columns: a call has one number and its answer; of 100 calls 99 keep the time in "99%". A pass is a context with one call and
the backward pass over it. MiB/s: tensors of 4 MiB in one direction. GFLOP/s: products of 512 x 512 matrices
(float32) with the node's threads.

Example: the cluster that `troupe launch cluster.json` has started
  troupe bench --cluster cluster.json

Example: the cluster of a node, as JSON
  troupe bench --join 127.0.0.1:4001 --json)";

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<bench_options>();
  auto* command = app.add_subcommand("bench", "Measure the nodes of a running cluster and the ways between them");
  command->option_defaults()->always_capture_default();
  auto* cluster =
    command->add_option("--cluster", options->cluster, "The running nodes of this cluster file (see troupe launch)")
      ->type_name("FILE")
      ->default_str("");
  auto* join = command->add_option("--join", options->join, "The running nodes of the cluster that the node at HOST:PORT is in")
                 ->check(host_and_port())
                 ->type_name("HOST:PORT")
                 ->default_str("")
                 ->excludes(cluster);
  command->add_option("--seconds", options->seconds, "Seconds for each way")->check(between(0.01, 3'600.0));
  command->add_flag("--json", options->json, "Print JSON");
  command->add_option("--host", options->host,
                      "Address or host name that this command listens on, for nodes on other hosts; 0.0.0.0: all");
  command
    ->add_option("--advertise", options->advertise,
                 "Address or host name by which nodes of other hosts reach this command, if it is not --host")
    ->check(advertised_host())
    ->type_name("HOST")
    ->default_str("");
  options->proof.add_to(*command);
  options->log.add_to(*command);
  command->footer(bench_examples);
  command->callback([options, cluster, join] {
    if (cluster->count() + join->count() == 0)
      throw CLI::RequiredError("--cluster FILE or --join HOST:PORT, the nodes to measure");
    run_bench(*options);
  });
}

}  // namespace troupe::apps
