// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "report.hpp"
#include "row_choice.hpp"
#include "suite_parts.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Measures what actors, messages and idle things cost, beside raw CAF and raw shared memory, and prints a table. Each figure "
  "is "
  "taken in processes of its own, in turns. Rows: small_call_over_caf is troupe's small call by a request of CAF with 200 "
  "bytes, both "
  "over CAF's network; small_call_own_network the same with troupe's network on troupe's side; small_call_memory the call "
  "through shared "
  "memory (floor: two processes that watch shared memory without a pause); heartbeat_late the 99th percentile of a heartbeat's "
  "way "
  "while all cores compute; fairness the slowest of 1,000 equal passes by their median; idle_context and idle_object bytes. "
  "Writes "
  "suite.json and suite.txt.";
constexpr const char* example = "Example: suite_bench --only small_call_memory fairness --out out/bench";

struct definition {
  std::string name;
  std::string unit;
  double bar = 0;
  std::function<row(bool quick)> measure{};  // name, unit and bar are filled in afterwards
};

/// The value below which `share` of the values are.
double percentile(std::vector<double> values, double share) {
  const auto place = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place), values.end());
  return values[place];
}

double median(const std::vector<double>& values) { return percentile(values, 0.5); }

/// The least median of several turns: what the code takes if nothing else runs.
template <class... Parts>
std::vector<double> best_of_turns(bool quick, Parts... parts) {
  std::vector<double> best(sizeof...(parts));
  for (int turn = 0; turn < (quick ? 1 : 5); ++turn) {
    std::size_t i = 0;
    const auto take = [&](const auto& part) {
      const auto found = median(in_own_process(part));
      best[i] = best[i] == 0 ? found : std::min(best[i], found);
      ++i;
    };
    (take(parts), ...);
  }
  return best;
}

row call_by_caf(carrier by, bool quick) {
  const int runs = quick ? 100 : 5'000;
  const auto found = best_of_turns(
    quick, [=] { return caf_requests(runs); }, [=] { return small_calls(by, runs); });
  return {.value = {found[0], found[1], 0}, .ratio = found[1] / found[0]};
}

row call_through_memory(bool quick) {
  const int runs = quick ? 100 : 5'000;
  const auto found = best_of_turns(
    quick, [=] { return spinning_exchanges(runs); }, [=] { return small_calls(carrier::shared_memory, runs); });
  return {.value = {0, found[1], found[0]}, .ratio = found[1], .note = "ratio: microseconds"};
}

row late_heartbeat(bool quick) {
  const auto found = in_own_process([=] { return answers_under_load(quick ? 10 : 500); });
  const auto late = percentile(found, 0.99);
  return {.value = {0, late, 0}, .ratio = late, .note = "ratio: milliseconds; median " + std::to_string(median(found))};
}

row fair_passes(bool quick) {
  const auto found = in_own_process([=] { return times_of_passes(quick ? 20 : 1'000); });
  const auto slowest = *std::max_element(found.begin(), found.end());
  return {.value = {median(found), slowest, 0}, .ratio = slowest / median(found), .note = "peer: the median"};
}

row idle(const std::function<std::vector<double>(int)>& bytes_of, bool quick) {
  const auto found = in_own_process([&] { return bytes_of(quick ? 40 : 4'000); });
  const auto more = std::max({found[0], found[1], 1.0});
  return {.value = {0, more, 0},
          .ratio = more,
          .note = "ratio: bytes; the one node " + std::to_string(static_cast<long>(found[0])) + ", the other " +
                  std::to_string(static_cast<long>(found[1]))};
}

std::vector<definition> all_rows() {
  return {
    {"small_call_over_caf", "us", 1.25, [](bool quick) { return call_by_caf(carrier::caf, quick); }},
    {"small_call_own_network", "us", 1.0, [](bool quick) { return call_by_caf(carrier::tcp, quick); }},
    {"small_call_memory", "us", 20, call_through_memory},
    {"heartbeat_late", "ms", 20, late_heartbeat},
    {"fairness", "ms", 2, fair_passes},
    {"idle_context", "bytes", 2048, [](bool quick) { return idle(bytes_of_context, quick); }},
    {"idle_object", "bytes", 512, [](bool quick) { return idle(bytes_of_object, quick); }},
  };
}

int measure(int argc, char** argv) {
  CLI::App app{what_it_does, "suite_bench"};
  app.footer(example);
  std::vector<std::string> only;
  std::string folder = "out/bench";
  bool quick = false;
  app.add_option("--only", only, "Names of the rows to measure (default: all)");
  app.add_option("--out", folder, "Folder for suite.json and suite.txt")->capture_default_str();
  app.add_flag("--quick", quick, "A few runs a row: checks that it works, measures nothing");
  CLI11_PARSE(app, argc, argv);
  auto chosen = all_rows();
  keep_only(chosen, only);
  std::vector<row> rows;
  for (const auto& each : chosen) {
    std::fprintf(stderr, "%s\n", each.name.c_str());
    auto found = each.measure(quick);
    found.name = each.name;
    found.unit = each.unit;
    found.bar = each.bar;
    found.at_most = true;
    rows.push_back(std::move(found));
  }
  std::fputs(table_of(rows, "peer").c_str(), stdout);
  write_report(folder, "suite", rows, "peer");
  std::printf("written to %s/suite.json and .txt\n", folder.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write to a child that has ended must not end this process
  try {
    return measure(argc, argv);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "suite_bench: %s\n", failed.what());
    return 1;
  }
}
