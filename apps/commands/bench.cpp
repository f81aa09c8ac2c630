// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/bench_command_test.cpp, tests/hosts/cluster_bench_test.cpp
#include "apps/commands/commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>

#include "apps/charlm/cluster.hpp"
#include "apps/charlm/figures.hpp"
#include "apps/cluster_file.hpp"
#include "apps/command_line.hpp"
#include "apps/probe/probe_module.hpp"
#include "apps/probe/savina.hpp"
#include "apps/signals.hpp"
#include "apps/text_table.hpp"

namespace troupe::apps {

namespace {

using charlm::fixed;
using charlm::grouped;

constexpr std::size_t most_nodes_for_all_ways = 12;  // 12 nodes have 132 ways
constexpr double time_to_compute = 0.3;              // seconds
constexpr double time_beside = 0.2;                  // seconds that a way takes beside --seconds
constexpr double far_off = 3;                        // times slower than the best quarter: worth a line
constexpr double enough_to_compare = 0.5;            // seconds of a way
constexpr const char* no_probe = "it has no module type 'probe'; start it with --load probe";
constexpr std::chrono::seconds time_to_join{5};
constexpr std::chrono::milliseconds longest_leave(1500);

struct bench_options {
  settings of_node;
  std::string cluster;
  std::string join;
  double seconds = 1;
  bool savina = false;
  bool json = false;
};

struct measured_way {
  std::string from;
  std::string to;
  std::string transport{};
  std::optional<probe::link> gives{};
  std::string problem{};
};

struct measured_node {
  std::string name;
  std::optional<double> gigaflops{};
  std::string problem{};
};

struct measured_program {
  std::string name;
  std::int64_t calls = 0;
  double seconds = 0;
  std::string problem{};

  double calls_per_second() const { return static_cast<double>(calls) / seconds; }
};

/// The ways from each node to each other node, and from this command's node to each. Among more nodes than
/// `most_nodes_for_all_ways`, a node has only the way to the next node in their order.
std::vector<measured_way> ways_between(const std::string& here, const std::vector<std::string>& nodes) {
  std::vector<measured_way> all;
  for (const auto& node : nodes) all.push_back({here, node});
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t j = 0; j < nodes.size(); ++j)
      if (i != j && (nodes.size() <= most_nodes_for_all_ways || j == (i + 1) % nodes.size()))
        all.push_back({nodes[i], nodes[j]});
  return all;
}

/// Calls `work`. Returns why it failed; empty on success.
template <class Work>
std::string problem_of(Work work) {
  try {
    work();
    return {};
  } catch (const std::exception& failed) {
    return one_line(failed);
  }
}

class cluster_bench {
 public:
  cluster_bench(const bench_options& options, const stop_signal& stop)
      : options_(options), stop_(stop), here_(settings_of(options)) {
    options.cluster.empty() ? join(options.join) : join(cluster_file::read(options.cluster));
  }

  /// Measures everything, or until a stop is asked for.
  void run() {
    for (const auto& name : names_)
      if (!stop_.requested()) compute(name);
    std::vector<std::string> names;
    {
      const checked_lock lock(mutex_);
      for (const auto& each : nodes_)
        if (each.gigaflops) names.push_back(each.name);
    }
    options_.savina ? measure_programs(names) : measure_ways(names);
  }

  void measure_programs(const std::vector<std::string>& names) {
    for (const auto* program : probe::savina_programs) {
      if (stop_.requested()) return;
      std::fprintf(stderr, "%s on %zu %s\n", program, names.size(), names.size() == 1 ? "node" : "nodes");
      measured_program result{program};
      result.problem = problem_of([&] { measure(result, names); });
      const checked_lock lock(mutex_);
      programs_.push_back(std::move(result));
    }
  }

  void measure_ways(const std::vector<std::string>& names) {
    if (stop_.requested()) return;
    const auto ways = ways_between(here_.name(), names);
    {
      const checked_lock lock(mutex_);
      ways_ = ways;
    }
    std::fprintf(stderr, "%zu %s, %zu %s between them; this takes about %s\n", names.size(),
                 names.size() == 1 ? "node" : "nodes", ways.size(), ways.size() == 1 ? "way" : "ways",
                 charlm::clock_text(static_cast<double>(ways.size()) * (options_.seconds + time_beside)).c_str());
    for (std::size_t i = 0; i < ways.size(); ++i) {
      auto way = ways[i];
      if (stop_.requested()) return;
      std::fprintf(stderr, "%zu of %zu: %s -> %s\n", i + 1, ways.size(), way.from.c_str(), way.to.c_str());
      way.problem = problem_of([&] { measure(way); });
      const checked_lock lock(mutex_);
      ways_[i] = way;
    }
  }

  bool complete() const {
    const checked_lock lock(mutex_);
    const auto has_problem = [](const auto& each) { return !each.problem.empty(); };
    return !stop_.requested() && !nodes_.empty() && std::none_of(ways_.begin(), ways_.end(), has_problem) &&
           std::none_of(nodes_.begin(), nodes_.end(), has_problem) &&
           std::none_of(programs_.begin(), programs_.end(), has_problem);
  }

  /// Prints all results so far. Any thread may call this function.
  void print() const {
    const checked_lock lock(mutex_);
    std::printf("%s", (options_.json ? json() : tables()).c_str());
    std::fflush(stdout);
  }

 private:
  std::string json() const TROUPE_REQUIRES(mutex_);
  std::string tables() const TROUPE_REQUIRES(mutex_);

  static settings settings_of(const bench_options& options) {
    auto result = options.of_node;
    result.name = name_in_kit(options.of_node);
    // A node that measures a way answers only after that time.
    result.deadline += std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.seconds));
    result.prepare = probe::add_type;
    return result;
  }

  /// Joins the cluster of the node at `address`. All nodes that are up are measured later. Nodes that are unreachable for the
  /// node at `address` are listed with the reason.
  void join(const std::string& address) {
    const auto [host, port] = parse_address(address);
    const auto first = here_.join(host, port, time_to_join);
    names_ = charlm::stage_nodes::join(here_, address, {}).names();
    const checked_lock lock(mutex_);
    for (const auto& each : here_.peer(first).status(time_to_join).peers)
      if (!each.up && !each.gone) nodes_.push_back({each.who.name, {}, "it is unreachable: " + each.reason});
  }

  /// Joins the nodes of a file, which are measured later. A node that can't be joined is listed with the reason, and is not
  /// measured.
  void join(const cluster_file& file) {
    for (const auto& each : file.nodes) {
      charlm::check_has_port(file, each);
      const auto problem = problem_of([&] { charlm::join_node(here_, file, each, time_to_join); });
      const checked_lock lock(mutex_);
      if (problem.empty())
        names_.push_back(each.name);
      else
        nodes_.push_back({each.name, {}, problem});
    }
    const checked_lock lock(mutex_);
    if (names_.empty()) throw std::runtime_error("no node of " + file.origin + " could be joined; " + nodes_.front().problem);
  }

  void compute(const std::string& name) {
    std::fprintf(stderr, "%s computes\n", name.c_str());
    measured_node result{name};
    try {
      const auto there = here_.peer(name, probe::time_to_find).create(probe::type);
      result.gigaflops = get<double>(there.call("compute", {}, {{"seconds", time_to_compute}}).get().values, "gigaflops");
    } catch (const error& failed) {
      const bool lacks_probe = failed.code() == errc::unknown_function;
      if (lacks_probe && !options_.join.empty()) {
        const checked_lock lock(mutex_);
        left_out_.push_back(name);  // may be a program of the user, or a training's driver
        return;
      }
      result.problem = lacks_probe ? no_probe : one_line(failed);
    } catch (const std::exception& failed) {
      result.problem = one_line(failed);
    }
    const checked_lock lock(mutex_);
    nodes_.push_back(std::move(result));
  }

  void measure(measured_way& way) {
    const auto up = here_.peers();
    for (const auto& name : {way.from, way.to})
      if (name != here_.name() && std::find(up.begin(), up.end(), name) == up.end())
        throw std::runtime_error(name + " is not up any more");
    if (way.from == here_.name()) {
      way.gives =
        probe::measure(here_, here_.peer(way.to, probe::time_to_find), std::chrono::duration<double>(options_.seconds));
      way.transport = transport(here_.status(), way.to);
      return;
    }
    const auto from = here_.peer(way.from, probe::time_to_find);
    const attributes what{{"peer", way.to}, {"seconds", options_.seconds}};
    way.gives = probe::link_of(from.create(probe::type).call("measure", {}, what).get().values);
    way.transport = transport(from.status(), way.to);
  }

  /// Runs a program from the first of the nodes on.
  void measure(measured_program& what, const std::vector<std::string>& names) {
    if (names.size() < 2) throw std::runtime_error("expected at least 2 nodes, got " + std::to_string(names.size()));
    const auto there = here_.peer(names.front(), probe::time_to_find).create(probe::type);
    const std::vector<std::string> others(names.begin() + 1, names.end());
    const attributes how{{"program", what.name}, {"peers", others}, {"seconds", options_.seconds}};
    const auto found = there.call("savina", {}, how).get().values;
    what.calls = get<std::int64_t>(found, "count");
    what.seconds = get<double>(found, "seconds");
  }

  static std::string transport(const node_status& of, const std::string& to) {
    for (const auto& each : of.peers)
      if (each.up && each.who.name == to) return each.transport;
    return {};
  }

  std::vector<std::string> remarks() const TROUPE_REQUIRES(mutex_);

  const bench_options& options_;
  const stop_signal& stop_;
  node here_;
  std::vector<std::string> names_;  // of the nodes to measure
  mutable checked_mutex mutex_;
  std::vector<std::string> left_out_ TROUPE_GUARDED_BY(mutex_);  // nodes without the module type
  std::vector<measured_node> nodes_ TROUPE_GUARDED_BY(mutex_);
  std::vector<measured_way> ways_ TROUPE_GUARDED_BY(mutex_);
  std::vector<measured_program> programs_ TROUPE_GUARDED_BY(mutex_);
};

nlohmann::ordered_json number_or_null(double value) { return value > 0 ? nlohmann::ordered_json(value) : nullptr; }

std::string cluster_bench::json() const {
  nlohmann::ordered_json result{{"nodes", nlohmann::ordered_json::array()},
                                {"ways", nlohmann::ordered_json::array()},
                                {"stopped", stop_.requested()},
                                {"left_out", left_out_},
                                {"remarks", remarks()}};
  for (const auto& each : nodes_) {
    nlohmann::ordered_json one{{"name", each.name}};
    if (each.gigaflops) one["gigaflops"] = *each.gigaflops;
    if (!each.problem.empty()) one["problem"] = each.problem;
    result["nodes"].push_back(std::move(one));
  }
  for (const auto& each : ways_) {
    if (!each.gives && each.problem.empty()) continue;  // not measured: the command was stopped before
    nlohmann::ordered_json one{{"from", each.from}, {"to", each.to}, {"transport", each.transport}};
    if (each.gives) {
      one["calls"] = each.gives->calls;
      one["call_us"] = each.gives->call_us;
      one["call_p99_us"] = number_or_null(each.gives->call_p99_us);
      one["call_p999_us"] = number_or_null(each.gives->call_p999_us);
      one["pass_us"] = each.gives->pass_us;
      one["mib_per_s"] = each.gives->mib_per_s;
    }
    if (!each.problem.empty()) one["problem"] = each.problem;
    result["ways"].push_back(std::move(one));
  }
  for (const auto& each : programs_) {
    nlohmann::ordered_json one{{"program", each.name}};
    if (each.problem.empty())
      one.update({{"calls", each.calls}, {"calls_per_second", each.calls_per_second()}});
    else
      one["problem"] = each.problem;
    result["programs"].push_back(std::move(one));
  }
  return result.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string cluster_bench::tables() const {
  std::vector<std::vector<std::string>> nodes{{"node", "GFLOP/s"}};
  std::vector<std::vector<std::string>> ways{{"from", "to", "transport", "call, us", "99%", "99.9%", "pass, us", "MiB/s"}};
  std::vector<std::vector<std::string>> programs{{"program", "calls", "calls/s", "us a call"}};
  std::string lines;
  for (const auto& each : programs_) {
    if (!each.problem.empty()) {
      lines += each.name + ": " + each.problem + "\n";
      continue;
    }
    const auto rate = each.calls_per_second();
    programs.push_back({each.name, grouped(static_cast<double>(each.calls)), grouped(rate), fixed(1e6 / rate, 1)});
  }
  for (const auto& each : nodes_) {
    nodes.push_back({each.name, each.gigaflops ? fixed(*each.gigaflops, 1) : "-"});
    if (!each.problem.empty()) lines += each.name + ": " + each.problem + "\n";
  }
  for (const auto& each : ways_) {
    if (!each.problem.empty()) lines += each.from + " -> " + each.to + ": " + each.problem + "\n";
    if (!each.gives && each.problem.empty()) continue;
    std::vector<std::string> row{each.from, each.to, each.transport.empty() ? "-" : each.transport};
    if (each.gives)
      for (const double figure :
           {each.gives->call_us, each.gives->call_p99_us, each.gives->call_p999_us, each.gives->pass_us, each.gives->mib_per_s})
        row.push_back(figure > 0 ? grouped(figure) : "-");
    else
      row.insert(row.end(), 5, "-");
    ways.push_back(std::move(row));
  }
  for (const auto& each : left_out_) lines += each + " was left out: " + no_probe + "\n";
  for (const auto& each : remarks()) lines += each + "\n";
  if (stop_.requested() && options_.savina)
    lines += "stopped: " + std::to_string(programs_.size()) + " of " + std::to_string(probe::savina_programs.size()) +
             " programs were measured\n";
  else if (stop_.requested())
    lines += "stopped: " + std::to_string(ways.size() - 1) + " of " + std::to_string(ways_.size()) +
             " ways were measured, and " + std::to_string(nodes_.size()) + " of " + std::to_string(names_.size()) + " nodes\n";
  return text_table(nodes, 1) + (ways.size() > 1 ? "\n" + text_table(ways, 3) : "") +
         (programs.size() > 1 ? "\n" + text_table(programs, 1) : "") + (lines.empty() ? "" : "\n" + lines);
}

/// A line for each way and node that is at least `far_off` times slower than the best quarter.
std::vector<std::string> cluster_bench::remarks() const {
  std::vector<double> rates;
  std::vector<double> calls;
  std::vector<double> products;
  for (const auto& each : ways_)
    if (each.gives) {
      rates.push_back(each.gives->mib_per_s);
      calls.push_back(each.gives->call_us);
    }
  for (const auto& each : nodes_)
    if (each.gigaflops) products.push_back(*each.gigaflops);
  std::vector<std::string> all;
  const auto add = [&](const std::string& who, const char* does, double factor, const std::string& than) {
    if (factor >= far_off) all.push_back(who + does + fixed(factor, 1) + than);
  };
  for (const auto& each : ways_) {
    if (!each.gives || rates.size() < 3 || options_.seconds < enough_to_compare) continue;
    const auto way = each.from + " -> " + each.to;
    add(way, " carries ", probe::percentile(rates, 0.75) / each.gives->mib_per_s, " times less than the better ways");
    add(way, " answers ", each.gives->call_us / probe::percentile(calls, 0.25), " times later than the better ways");
  }
  for (const auto& each : nodes_)
    if (each.gigaflops && products.size() >= 3)
      add(each.name, " computes ", probe::percentile(products, 0.75) / *each.gigaflops, " times slower than the better nodes");
  return all;
}

void run_bench(const bench_options& options) {
  std::atomic<const cluster_bench*> bench{nullptr};
  // The measurement that runs at a stop ends by itself, usually at once. If it does not, the command ends without it.
  const stop_signal stop;
  last_exit end(stop, longest_leave, [&] {
    if (const auto* now = bench.load()) now->print();
    _exit(1);
  });
  cluster_bench measured(options, stop);
  bench = &measured;
  measured.run();
  bench = nullptr;
  end.disarm();
  measured.print();
  if (!measured.complete()) throw CLI::RuntimeError(1);
}

constexpr const char* bench_examples =
  R"(The nodes have to run, and to be started with --load probe. One way is measured at a time. Other work on the cluster
makes the figures worse, and the measurement slows that work. With more than 12 nodes each node is measured to
the next one alone, in the order of the file or of the names. Ctrl-C prints what has been measured so far.

Columns: a call has one number and its answer, and its time is the median; 99 of 100 calls keep the time in "99%" ("-": too few
calls to tell). A pass is a context with one call and the backward pass over it. MiB/s: tensors of 4 MiB in one direction,
16 MiB under way. GFLOP/s: products of 512 x 512 matrices (float32) with the threads of the node; nodes of one host, one
after the other, each show what the host gives.

Example: the cluster that `troupe launch cluster.json --load probe` has started
  troupe bench --cluster cluster.json

--savina: ping_pong (one node calls one other after the other), thread_ring (a token goes around the nodes), big (each node
calls random others) and chameneos (creatures on all nodes meet in pairs), from the first node on. Each result is checked.

Example: the cluster of a node, as JSON
  troupe bench --join 127.0.0.1:4001 --json

Example: nodes on other hosts, which connect to this command too
  troupe bench --cluster cluster.json --host 0.0.0.0 --certificates operator.pem)";

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<bench_options>();
  auto* command = app.add_subcommand("bench", "Measure the nodes of a running cluster and the ways between them");
  command->option_defaults()->always_capture_default();
  auto* cluster =
    command->add_option("--cluster", options->cluster, "The running nodes of this cluster file (see troupe launch)")
      ->type_name("FILE");
  auto* join = command->add_option("--join", options->join, "The running nodes of the cluster that the node at HOST:PORT is in")
                 ->check(host_and_port())
                 ->type_name("HOST:PORT")
                 ->excludes(cluster);
  command->add_option("--seconds", options->seconds, "Seconds for each way, or for each program of --savina")
    ->check(within(probe::shortest.count(), probe::longest.count(), "0.01 to 600"));
  command->add_flag("--savina", options->savina,
                    "Measure four actor programs of the Savina suite that the nodes run together, in the place of the ways");
  command->add_flag("--json", options->json, "Print JSON");
  options->of_node.name = "bench";
  constexpr std::array<std::string_view, 3> own{"--name", "--host", "--advertise"};
  for (const auto names : {option_names(own), proof, option_names(log_options)})
    add_node_options(*command, options->of_node, names);
  command->get_option("--name")->description("Name of this command in the cluster, if it has no kit that names it");
  command->footer(bench_examples);
  command->callback([options, cluster, join] {
    if (cluster->count() + join->count() == 0)
      throw CLI::ParseError("expected --cluster FILE or --join HOST:PORT, which name the nodes to measure",
                            CLI::ExitCodes::RequiredError);
    run_bench(*options);
  });
}

}  // namespace troupe::apps
