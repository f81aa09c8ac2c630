// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <thread>

#include "../support/bench_program.hpp"
#include "nodes.hpp"
#include "systems.hpp"

using namespace troupe::bench;
using namespace troupe::bench::savina;

namespace {

constexpr const char* what_it_does =
  "Runs the Savina suite of actor benchmarks on CAF with both of its policies, beside Erlang/OTP, plain threads with queues "
  "and "
  "Pykka, the six programs of messages also as brokers, and four programs over processes. Each result is checked. Each figure "
  "is "
  "taken in processes of its own, in turns. Prints a table of the rows, and writes savina.json, savina.txt and "
  "savina.curves.json. The ratio of a row is Erlang's time by that of the better policy of CAF. Parameters: "
  "bench/savina/parameters.txt.";
constexpr const char* example = "Example: savina_bench --only savina_ping_pong threads_ping_pong --out out/bench";
constexpr const char* no_erlang = "no Erlang here: apt-get install erlang-base";

std::size_t cores() { return std::max(1U, std::thread::hardware_concurrency()); }

using parameters = std::map<std::string, values>;

parameters all_parameters(bool quick) { return read_parameters(TROUPE_SAVINA_DIR "/parameters.txt", quick); }

/// The times of a system in ms. The figure is the least: what the system takes if nothing else runs.
struct measured_system {
  std::string name;
  std::vector<double> rounds_ms{};

  double ms() const { return *std::min_element(rounds_ms.begin(), rounds_ms.end()); }
};

/// Why a program takes CAF longer than Erlang: what the row says if it does. See docs/schedulers.md.
std::string reason_of(const std::string& name) {
  static const std::set<std::string> messages_alone{"ping_pong",  "thread_ring",  "big",     "chameneos",
                                                    "dictionary", "philosophers", "counting"};
  if (name == "barber") return "; each end of an actor wakes the thread of CAF's clock";
  return messages_alone.contains(name) ? "; CAF finds out the type of each message by strings and casts" : "";
}

/// A program on each system, in turns. Slow systems run in the first turn alone, once.
row measure_program(const program& which, bool quick) {
  const auto of = all_parameters(quick).at(which.name);
  const int turns = quick ? 1 : 3;
  const int rounds = quick ? 1 : 3;
  std::vector<std::pair<runner_system, measured_system>> all;
  for (const auto& each : {erlang(), stealing(), sharing(), of_a_node(), brokers(), detached(), plain_threads(), pykka()})
    if (each.runs(which, of)) all.emplace_back(each, measured_system{each.name});
  const auto is_slow = [](const std::string& name) {
    return name == detached().name || name == plain_threads().name || name == pykka().name;
  };
  for (int turn = 0; turn < turns; ++turn)
    for (auto& [system, found] : all)
      if (turn == 0 || !is_slow(system.name))
        for (const auto seconds : system.measure(which, of, is_slow(system.name) ? 1 : rounds, cores()))
          found.rounds_ms.push_back(1e3 * seconds);
  const auto named = [&](const std::string& name) -> const measured_system* {
    for (const auto& [system, found] : all)
      if (system.name == name) return &found;
    return nullptr;
  };
  const auto& better = std::min(*named(stealing().name), *named(sharing().name),
                                [](const auto& one, const auto& other) { return one.ms() < other.ms(); });
  const auto* peer = named(erlang().name);
  std::string note = "ms:";
  for (const auto& [system, found] : all)
    if (&found != peer) note += (note.size() > 3 ? ", " : " ") + system.name + " " + short_number(found.ms());
  row made{.value = {peer != nullptr ? peer->ms() : 0, better.ms(), 0},
           .ratio = peer != nullptr ? peer->ms() / better.ms() : 0,
           .note = note + (peer != nullptr ? "" : std::string("; ") + no_erlang)};
  made.spreads.troupe = spread_of(better.rounds_ms, better.ms());
  if (peer == nullptr) return made;
  made.spreads.peer = spread_of(peer->rounds_ms, peer->ms());
  if (made.ratio < 1) made.note += reason_of(which.name);
  return made;
}

std::vector<row_definition> savina_rows() {
  std::vector<row_definition> rows;
  for (const auto& each : all_programs())
    rows.push_back({"savina_" + each.name, "ms", at_least(0), each.text + " Peer: Erlang/OTP; no bar.",
                    [each](bool quick) { return measure_program(each, quick); }});
  return rows;
}

/// The throughput of a program over the threads of a scheduler.
plot by_threads(const program& which, bool quick) {
  const auto of = all_parameters(quick).at(which.name);
  plot made{words_of(which.name),
            "Higher is better. " + which.text,
            {"threads of the scheduler", ""},
            {which.counted + " a second", ""}};
  const auto add = [&](const runner_system& system, role as) {
    if (!system.runs(which, of)) return;
    made.curves.push_back(curve_over(quick ? std::vector<std::size_t>{1} : std::vector<std::size_t>{1, 2, 3, 4}, system.name,
                                     as, [&](std::size_t threads) {
                                       auto found = system.measure(which, of, quick ? 1 : 2, threads);
                                       for (auto& each : found) each = static_cast<double>(which.count(of)) / each;
                                       return found;
                                     }));
  };
  add(stealing(), role::variant);
  add(sharing(), role::variant);
  add(of_a_node(), role::troupe);
  add(erlang(), role::peer);
  made.default_x = 2;
  made.default_name = "scheduler.max-threads";
  return made;
}

/// How late the slow answers of a program are.
plot late_answers(const program& which, bool quick) {
  auto of = all_parameters(quick).at(which.name);
  of.set("trips", 1);
  plot made{words_of(which.name) + ": how late the slow answers are",
            "Lower is better. At 100: 99 of 100 answers come within this time.",
            {"answers of which one takes longer", "", true},
            {"time of a message and its answer", "us", true}};
  const std::vector<double> one_of = quick ? std::vector<double>{2, 10} : std::vector<double>{2, 10, 100, 1'000, 10'000};
  const auto add = [&](const runner_system& system, role as) {
    if (!system.runs(which, of)) return;
    std::vector<std::vector<double>> turns;
    for (int turn = 0; turn < (quick ? 1 : 3); ++turn) turns.push_back(system.measure(which, of, 1, cores()));
    made.curves.push_back(curve_over(one_of, system.name, as, [&](double one) {
      std::vector<double> late;
      for (const auto& each : turns) late.push_back(percentile(each, 1 - 1 / one));
      return late;
    }));
  };
  add(stealing(), role::variant);
  add(sharing(), role::variant);
  add(of_a_node(), role::troupe);
  add(plain_threads(), role::floor);
  add(erlang(), role::peer);
  return made;
}

std::vector<plot_definition> savina_plots() {
  std::vector<plot_definition> plots;
  for (const auto& each : all_programs())
    plots.push_back({"threads_" + each.name, [each](bool quick) { return by_threads(each, quick); }});
  for (const auto& each : all_programs())
    if (each.name == "ping_pong" || each.name == "big")
      plots.push_back({"late_" + each.name, [each](bool quick) { return late_answers(each, quick); }});
  return plots_of_group("savina", joined<plot_definition>({plots, plots_over_processes()}));
}

/// The names of rows and plots, for --help.
std::string list_of_names() {
  std::string text = "Rows:\n";
  for (const auto& each : all_programs()) text += "  savina_" + each.name + ": " + each.text + "\n";
  text += "\nPlots:";
  std::size_t count = 0;
  for (const auto& each : savina_plots()) text += (count++ % 4 == 0 ? "\n  " : ", ") + each.name;
  return text + "\n\n" + example;
}

int measure_savina(const bench_choice& how) {
  auto rows = savina_rows();
  auto plots = savina_plots();
  keep_only(how.only, rows, plots);
  const auto found = measure_each(rows, plots, how.quick);
  write_measured(found, how.folder, "savina", "Erlang");
  return found.is_whole ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return run({.name = "savina_bench",
              .what_it_does = what_it_does,
              .footer = list_of_names(),
              .files = "savina.json, savina.txt and savina.curves.json",
              .run = measure_savina},
             argc, argv);
}
