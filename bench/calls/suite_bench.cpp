// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "../support/report.hpp"
#include "../support/row_choice.hpp"
#include "../report/row_texts.hpp"
#include "actor_plots.hpp"
#include "grain_plots.hpp"
#include "memory_plots.hpp"
#include "exchanges.hpp"
#include "message_plots.hpp"
#include "scheduling_plots.hpp"
#include "shape_plots.hpp"
#include "trainings.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Measures what actors, messages, schedulers, shapes of calls, trainings and idle things cost, beside raw CAF, gRPC, raw "
  "sockets, raw "
  "shared memory and PyTorch. Each figure is taken in processes of its own, in turns. Prints a table of the rows, and writes "
  "suite.json, "
  "suite.txt and suite.curves.json. What can't be measured is told and left out, and the exit status is 1. training_pipelining "
  "needs a Python with PyTorch (`make test-python` installs it).";
constexpr const char* example = "Example: suite_bench --only small_call_memory fairness --out out/bench";

/// What one definition has measured. Neither a row nor a plot: it could not be measured here, and has printed why.
struct measured {
  std::optional<row> figure{};  // name, unit and bar are filled in afterwards
  std::optional<plot> curves{};
};

struct definition {
  std::string name;
  std::string unit;
  double bar = 0;
  bool at_most = true;
  std::function<measured(bool quick)> measure{};
};

double median(const std::vector<double>& values) { return percentile(values, 0.5); }

/// The medians of several turns, by part. The parts take turns.
template <class... Parts>
std::vector<std::vector<double>> medians_of_turns(int turns, Parts... parts) {
  std::vector<std::vector<double>> all(sizeof...(parts));
  for (int turn = 0; turn < turns; ++turn) {
    std::size_t i = 0;
    (all[i++].push_back(median(in_own_process(parts))), ...);
  }
  return all;
}

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

/// One by the other, turn by turn.
std::vector<double> ratios(const std::vector<double>& of, const std::vector<double>& by) {
  std::vector<double> all;
  for (std::size_t i = 0; i < of.size(); ++i) all.push_back(of[i] / by[i]);
  return all;
}

constexpr int turns_of(bool quick) { return quick ? 1 : 5; }

/// The figures are the least medians of the turns: what the code takes if nothing else runs.
measured call_by_caf(carrier by, bool quick) {
  const int runs = quick ? 100 : 5'000;
  const auto found = medians_of_turns(
    turns_of(quick), [=] { return caf_requests(runs); }, [=] { return small_calls(by, runs); });
  const auto peer = least(found[0]);
  const auto ours = least(found[1]);
  return {row{
    .value = {peer, ours, 0},
    .ratio = ours / peer,
    .spreads = {spread_of(found[0], peer), spread_of(found[1], ours), {}, spread_of(ratios(found[1], found[0]), ours / peer)}}};
}

measured call_through_memory(bool quick) {
  const int runs = quick ? 100 : 5'000;
  const auto found = medians_of_turns(
    turns_of(quick), [=] { return spinning_exchanges(runs); }, [=] { return small_calls(carrier::shared_memory, runs); });
  const auto floor = least(found[0]);
  const auto ours = least(found[1]);
  return {row{.value = {0, ours, floor},
              .ratio = ours,
              .note = "ratio: microseconds",
              .spreads = {{}, spread_of(found[1], ours), spread_of(found[0], floor), spread_of(found[1], ours)}}};
}

measured late_heartbeat(bool quick) {
  const turns_of_part found(quick ? 1 : 3, [=] {
    auto late = late_ones(times_of_answers(quick ? 10 : 300, true), {100, 2});
    for (auto& us : late) us /= 1e3;
    return late;
  });
  const auto late = found.median(0);
  return {row{.value = {0, late, 0},
              .ratio = late,
              .note = "ratio: milliseconds; median " + std::to_string(found.median(1)),
              .spreads = {{}, spread_of(found.all(0), late), {}, spread_of(found.all(0), late)}}};
}

measured fair_passes(bool quick) {
  const turns_of_part found(quick ? 1 : 3, [=] {
    const auto times = times_of_passes(quick ? 20 : 1'000);
    const auto slowest = *std::max_element(times.begin(), times.end());
    return std::vector{median(times), slowest, slowest / median(times)};
  });
  const auto ratio = found.median(2);
  return {row{
    .value = {found.median(0), found.median(1), 0},
    .ratio = ratio,
    .note = "peer: the median",
    .spreads = {
      spread_of(found.all(0), found.median(0)), spread_of(found.all(1), found.median(1)), {}, spread_of(found.all(2), ratio)}}};
}

/// Bytes of idle things: the largest of the figures from `first` to `last` that a part returns.
measured idle(const std::function<std::vector<double>(int)>& bytes_of, std::size_t first, std::size_t last, int count,
              bool quick) {
  const turns_of_part found(quick ? 1 : 3, [&] { return bytes_of(quick ? std::max(4, count / 100) : count); });
  auto most = first;
  for (auto each = first; each <= last; ++each)
    if (found.median(each) > found.median(most)) most = each;
  const auto bytes = std::max(found.median(most), 1.0);
  std::string note;
  if (last > first)
    note = "the one node " + std::to_string(static_cast<long>(found.median(first))) + ", the other " +
           std::to_string(static_cast<long>(found.median(last)));
  const auto spread = spread_of(found.all(most), bytes);
  return {row{.value = {0, bytes, 0}, .ratio = bytes, .note = std::move(note), .spreads = {{}, spread, {}, spread}}};
}

/// What small calls take beside CAF, their headers and their tensors, where 16 are under way, so that no thread has to wake. Both processes
/// work at once then: together they have worked for twice the time.
measured layers(bool quick) {
  const int runs = quick ? 20 : 2'000;
  const turns_of_part found(turns_of(quick), [=] {
    const auto parts = layers_of_call(runs);
    const auto whole = 2 * percentile(calls_together({}, 16, runs / 10), 0.5);
    const auto known = parts.caf + parts.headers + parts.tensors;
    return std::vector{known, whole, std::max(0.01, (whole - known) / whole), parts.caf, parts.headers, parts.tensors};
  });
  char note[160];
  std::snprintf(note, sizeof note, "ratio: the rest by the whole; us: CAF %.1f, headers %.1f, tensors %.1f", found.median(3),
                found.median(4), found.median(5));
  return {row{.value = {found.median(0), found.median(1), 0},
              .ratio = found.median(2),
              .note = note,
              .spreads = {spread_of(found.all(0), found.median(0)),
                          spread_of(found.all(1), found.median(1)),
                          {},
                          spread_of(found.all(2), found.median(2))}}};
}

/// See python_with_torch(). It takes seconds to find out.
const std::string& the_python() {
  static const std::string found = python_with_torch();
  return found;
}

measured training(bool quick) {
  const auto& python = the_python();
  if (python.empty()) {
    std::fputs("training_pipelining: skipped: expected a Python with PyTorch " TROUPE_TORCH_VERSION
               "; `make test-python` installs one, or set TROUPE_PYTHON\n",
               stderr);
    return {};
  }
  const training_size what{.steps = quick ? 4 : 20, .quick = quick};
  const auto found = medians_of_turns(
    quick ? 1 : 3, [=] { return tokens_of_pipelining(what, python); },
    [=] { return std::vector{tokens_of_troupe(what, false)[0]}; });
  const auto peer = median(found[0]);
  const auto ours = median(found[1]);
  return {row{
    .value = {peer, ours, 0},
    .ratio = ours / peer,
    .spreads = {spread_of(found[0], peer), spread_of(found[1], ours), {}, spread_of(ratios(found[1], found[0]), ours / peer)}}};
}

std::vector<definition> all_rows() {
  return {
    {"small_call_over_caf", "us", 1.25, true, [](bool quick) { return call_by_caf(carrier::caf, quick); }},
    {"small_call_own_network", "us", 1.0, true, [](bool quick) { return call_by_caf(carrier::tcp, quick); }},
    {"small_call_memory", "us", 20, true, call_through_memory},
    {"heartbeat_late", "ms", 20, true, late_heartbeat},
    {"fairness", "ms", 2, true, fair_passes},
    {"idle_context", "bytes", 2'048, true, [](bool quick) { return idle(bytes_of_context, 0, 1, 4'000, quick); }},
    {"idle_object", "bytes", 512, true, [](bool quick) { return idle(bytes_of_object, 0, 1, 4'000, quick); }},
    {"idle_actor", "bytes", 2'048, true, [](bool quick) { return idle(bytes_of_actor, 0, 0, 10'000, quick); }},
    {"idle_thread_actor", "bytes", 65'536, true, [](bool quick) { return idle(bytes_of_actor, 1, 1, 10'000, quick); }},
    {"idle_node", "bytes", 1 << 20, true, [](bool quick) { return idle(bytes_of_node, 0, 0, 64, quick); }},
    {"idle_connection", "bytes", 1 << 18, true, [](bool quick) { return idle(bytes_of_node, 1, 1, 64, quick); }},
    {"small_call_layers", "us", 0.97, true, layers},
    {"training_pipelining", "tokens/s", 1.1, false, training},
  };
}

definition of_plot(const std::string& name, plot (*measure)(bool quick)) {
  return {name, "", 0, true, [=](bool quick) { return measured{.curves = measure(quick)}; }};
}

std::vector<definition> all_plots() {
  return {
    of_plot("call_by_size", call_by_size),
    of_plot("floors_by_size", floors_by_size),
    of_plot("calls_at_once", calls_at_once),
    of_plot("call_percentiles", call_percentiles),
    of_plot("messages_in_a_process", messages_in_a_process),
    of_plot("scheduler_latency", scheduler_latency),
    of_plot("scheduler_policies", scheduler_policies),
    of_plot("scheduler_throughput", scheduler_throughput),
    of_plot("middleman_workers", middleman_workers),
    of_plot("workers_of_a_node", workers_of_a_node),
    of_plot("who_runs_a_call", who_runs_a_call),
    of_plot("who_waits_for_a_call", who_waits_for_a_call),
    of_plot("wake_up", wake_up),
    of_plot("late_messages", late_messages),
    of_plot("fairness_by_passes", fairness_by_passes),
    of_plot("functions_in_a_message", functions_in_a_message),
    of_plot("pass_by_grain", pass_by_grain),
    of_plot("shapes_without_work", shapes_without_work),
    of_plot("shapes_in_a_process", shapes_in_a_process),
    of_plot("shapes_at_work", shapes_at_work),
    of_plot("work_spread_over_processes", work_spread_over_processes),
    of_plot("nodes_of_a_process", nodes_of_a_process),
    of_plot("bubbles_by_micro_batches", bubbles_by_micro_batches),
    of_plot("memory_by_calls", memory_by_calls),
    of_plot("memory_by_passes", memory_by_passes),
    {"training_by_stages", "", 0, true, [](bool quick) { return measured{.curves = training_by_stages(the_python(), quick)}; }},
  };
}

/// The names of rows and plots, for --help.
std::string list_of_names() {
  std::string text = "Rows:\n";
  for (const auto& each : all_rows())
    text +=
      "  " + each.name + std::string(24 - std::min<std::size_t>(each.name.size(), 23), ' ') + text_of_row(each.name) + "\n";
  text += "\nPlots:";
  std::size_t width = 0;
  for (const auto& each : all_plots()) {
    text += (width % 4 == 0 ? "\n  " : ", ") + each.name;
    ++width;
  }
  return text + "\n\n" + example;
}

int measure(int argc, char** argv) {
  CLI::App app{what_it_does, "suite_bench"};
  app.footer(list_of_names());
  std::vector<std::string> only;
  std::string folder = "out/bench";
  bool quick = false;
  app.add_option("--only", only, "Names of the rows and plots to measure (default: all)");
  app.add_option("--out", folder, "Folder for the files")->capture_default_str();
  app.add_flag("--quick", quick, "A few runs a row: checks that it works, measures nothing");
  CLI11_PARSE(app, argc, argv);
  auto chosen = all_rows();
  for (auto& each : all_plots()) chosen.push_back(std::move(each));
  keep_only(chosen, only);
  std::vector<row> rows;
  std::vector<plot> plots;
  bool failed = false;
  for (const auto& each : chosen) {
    std::fprintf(stderr, "-- %s\n", each.name.c_str());
    const auto begin = std::chrono::steady_clock::now();
    measured found;
    try {
      found = each.measure(quick);
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "suite_bench: %s: %s\n", each.name.c_str(), problem.what());
      failed = true;
      continue;
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "-- %s: %.0f s\n", each.name.c_str(), taken.count());
    if (found.curves) plots.push_back(std::move(*found.curves));
    if (!found.figure) continue;
    auto& figure = *found.figure;
    figure.name = each.name;
    figure.unit = each.unit;
    figure.bar = each.bar;
    figure.at_most = each.at_most;
    rows.push_back(std::move(figure));
  }
  if (!rows.empty()) {
    std::fputs(table_of(rows, "peer").c_str(), stdout);
    write_report(folder, "suite", rows, "peer");
  }
  if (!plots.empty()) write_curves(folder, "suite", plots);
  std::printf("written to %s/suite.*\n", folder.c_str());
  return failed ? 1 : 0;
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
