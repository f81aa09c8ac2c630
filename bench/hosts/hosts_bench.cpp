// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "host_part.hpp"
#include "host_plots.hpp"
#include "rows.hpp"
#include "../support/report.hpp"
#include "../support/row_choice.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Measures troupe between hosts, which are network namespaces of this machine with addresses of their own, and real TCP "
  "between them. Takes root, and Debian's packages iproute2 and iptables. Prints a table: ratio is what the bar bounds, beside "
  "is what "
  "troupe is compared with in the same run, floor is bare TCP. Also writes hosts.json and hosts.txt. All rows take about "
  "20 minutes. Ends with status 1 if a row could not be measured or is short of its bar.";
constexpr const char* example = "Example: hosts_bench --only bulk_1gbit small_call_hosts";
constexpr const char* beside = "beside";
constexpr const char* devices = "devices";  // the report of devices_bench

/// Why no hosts can be made here; empty if they can.
std::string objection() {
  try {
    troupe::hosts::testbed probe({"one", "other"});
    probe.cut("one", "other");
    probe.limit_rate("one", "100mbit");
    return {};
  } catch (const std::exception& problem) {
    return problem.what();
  }
}

/// Measures the rows. A row that fails is told and left out. Returns whether no row failed and all reached their bars. A quick run
/// has to reach bars of 0 alone: its other figures mean nothing.
bool run(const std::vector<hosts_row>& chosen, const hosts_effort& effort, const std::string& folder, const std::string& name) {
  std::vector<row> all;
  for (const auto& each : chosen) {
    std::fprintf(stderr, "-- %s\n", each.name.c_str());
    const auto begin = std::chrono::steady_clock::now();
    try {
      const auto found = each.measure(effort);
      all.push_back({each.name, each.unit, found.value, found.ratio, each.bar, each.at_most, found.note});
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      std::fprintf(stderr, "-- %s: %.3g, %s (%.0f s)\n", each.name.c_str(), found.ratio, all.back().holds() ? "ok" : "short",
                   taken.count());
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "hosts_bench: %s: %s\n", each.name.c_str(), problem.what());
    }
  }
  std::printf("%s", table_of(all, beside).c_str());
  std::fflush(stdout);
  (name == devices ? add_to_report : write_report)(folder, name, all, beside);
  const auto counts = [&](const row& each) { return !effort.quick || each.bar == 0; };
  const auto is_short = [&](const row& each) { return counts(each) && !each.holds(); };
  return all.size() == chosen.size() && std::none_of(all.begin(), all.end(), is_short);
}

/// Measures the plots. A plot that fails is told and left out. Returns whether none failed.
bool draw(const std::vector<hosts_plot>& chosen, const hosts_effort& effort, const std::string& folder) {
  std::vector<plot> all;
  for (const auto& each : chosen) {
    std::fprintf(stderr, "-- %s\n", each.name.c_str());
    const auto begin = std::chrono::steady_clock::now();
    try {
      all.push_back(each.measure(effort));
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      std::fprintf(stderr, "-- %s: %.0f s\n", each.name.c_str(), taken.count());
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "hosts_bench: %s: %s\n", each.name.c_str(), problem.what());
    }
  }
  if (!all.empty()) write_curves(folder, "hosts", all);
  return all.size() == chosen.size();
}

/// A row or a plot, by its name.
struct chosen_name {
  std::string name;
};

int measure(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  ::setenv("TROUPE_PROGRAM", TROUPE_PROGRAM_FILE, 0);  // NOLINT(concurrency-mt-unsafe): there is one thread yet
  CLI::App app{what_it_does};
  app.footer(example);
  std::vector<std::string> only;
  std::string folder = "out/bench";
  hosts_effort effort;
  bool security = false;
  bool wire = false;
  app.add_option("--only", only, "measure these rows and plots");
  app.add_option("--out", folder, "where to write hosts.json, hosts.txt and hosts.curves.json")->capture_default_str();
  app.add_flag("--security", security, "measure the rows of security instead, about 5 minutes; writes security.json and .txt");
  app
    .add_flag("--wire", wire,
              "measure the rows of wire formats instead, less than a minute; adds them to devices.json and .txt")
    ->excludes("--security");
  app.add_flag("--quick", effort.quick, "as little as possible: to see that it works");
  app.add_option("--minutes", effort.minutes, "how long chaos_hosts lasts")
    ->check(CLI::Range(0.1, 10'000.0))
    ->capture_default_str();
  auto* seed = app.add_option("--seed", effort.seed, "what chaos_hosts draws from; without it another seed each time");
  CLI11_PARSE(app, argc, argv);
  if (seed->count() == 0 && !effort.quick) effort.seed = std::random_device{}();
  auto chosen = security ? security_rows() : wire ? wire_rows() : hosts_rows();
  auto plots = security || wire ? std::vector<hosts_plot>{} : hosts_plots();
  std::vector<chosen_name> names;
  for (const auto& each : chosen) names.push_back({each.name});
  for (const auto& each : plots) names.push_back({each.name});
  keep_only(names, only);
  const auto is_left_out = [&](const auto& each) {
    return std::none_of(names.begin(), names.end(), [&](const auto& left) { return left.name == each.name; });
  };
  std::erase_if(chosen, is_left_out);
  std::erase_if(plots, is_left_out);
  if (const auto reason = objection(); !reason.empty())
    throw std::runtime_error(
      "SKIPPED: no hosts can be made here, which takes root, and Debian's packages iproute2 and iptables; " + reason);
  const bool rows_hold = chosen.empty() || run(chosen, effort, folder, security ? "security" : wire ? devices : "hosts");
  return draw(plots, effort, folder) && rows_hold ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::string_view(argv[1]) == "part") return run_part(argc, argv);
    return measure(argc, argv);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "hosts_bench: %s\n", failed.what());
  } catch (...) {
    std::fputs("hosts_bench: an exception of an unknown type\n", stderr);
  }
  return 1;
}
