// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <exception>
#include <random>
#include <string_view>

#include <CLI/CLI.hpp>

#include "host_process.hpp"
#include "rows.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Measures troupe between hosts, which are network namespaces of this machine with addresses of their own, and real TCP "
  "between them. Takes root, and Debian's packages iproute2 and iptables. Prints a table: ratio is what the bar bounds, beside "
  "is what troupe is compared with in the same run, floor is bare TCP. Also writes hosts.json and hosts.txt. All rows take "
  "about 20 minutes. Ends with status 1 if a row could not be measured or is short of its bar.";
constexpr const char* example = "Example: hosts_bench --only bulk_1gbit small_call_hosts";

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

struct rows_of_bench {
  bool security = false;
  bool wire = false;
  chaos_choice chaos{};
  CLI::Option* seed = nullptr;
};

void add_options(CLI::App& app, rows_of_bench& to) {
  app.add_flag("--security", to.security,
               "Measure the rows of security instead, about 5 minutes; writes security.json and .txt");
  app
    .add_flag("--wire", to.wire,
              "Measure the rows of wire formats instead, less than a minute; adds them to devices.json and .txt")
    ->excludes("--security");
  app.add_option("--minutes", to.chaos.minutes, "How long chaos_hosts lasts")
    ->check(CLI::Range(0.1, 10'000.0))
    ->capture_default_str();
  to.seed = app.add_option("--seed", to.chaos.seed, "What chaos_hosts draws from; without it another seed each time");
}

/// A row that is short of its bar is a failure too. A quick run has to reach bars of 0 alone: its other figures mean nothing.
int measure_hosts(rows_of_bench what, const bench_choice& how) {
  ::setenv("TROUPE_PROGRAM", TROUPE_PROGRAM_FILE, 0);  // NOLINT(concurrency-mt-unsafe): there is one thread yet
  if (what.seed->count() == 0 && !how.quick) what.chaos.seed = std::random_device{}();
  const bool all = !what.security && !what.wire;
  auto rows =
    what.security ? security_rows()
    : what.wire
      ? wire_rows()
      : joined<row_definition>({link_rows(), member_rows(), simulated_rows(), training_rows(), chaos_rows(what.chaos)});
  auto plots = all ? host_plots() : std::vector<plot_definition>{};
  keep_only(how.only, rows, plots);
  if (const auto reason = objection(); !reason.empty())
    throw std::runtime_error(
      "SKIPPED: no hosts can be made here, which takes root, and Debian's packages iproute2 and iptables; " + reason);
  const auto found = measure_each(rows, plots, how.quick);
  // devices.json is the report of devices_bench
  write_measured(found, how.folder, what.security ? "security" : what.wire ? "devices" : "hosts", "beside", what.wire);
  const auto is_short = [&](const row& each) { return (!how.quick || each.should_be.bound == 0) && !each.holds(); };
  return found.is_whole && std::none_of(found.rows.begin(), found.rows.end(), is_short) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "process") return run_process(argc, argv);
  rows_of_bench what;
  return run({.name = "hosts_bench",
              .what_it_does = what_it_does,
              .footer = example,
              .files = "hosts.json, hosts.txt and hosts.curves.json",
              .run = [&](const bench_choice& how) { return measure_hosts(what, how); },
              .add_options = [&](CLI::App& app) { add_options(app, what); }},
             argc, argv);
}
