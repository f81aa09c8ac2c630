// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "../support/peers.hpp"
#include "../support/size_ladder.hpp"
#include "suite.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Measures what actors, messages, schedulers, shapes of calls, trainings and idle things cost, beside raw CAF, gRPC, "
  "TensorPipe, raw "
  "sockets, raw shared memory and PyTorch. Each figure is taken in processes of its own, in turns. Prints a table of the rows, "
  "and writes suite.json, suite.txt and suite.curves.json. What can't be measured is told and left out, and the exit status is "
  "1. training_pipelining needs a Python with PyTorch (`make test-python` installs it).";
constexpr const char* example = "Example: suite_bench --only small_call_memory fairness --out out/bench";

double median(const std::vector<double>& values) { return percentile(values, 0.5); }

using measurement = std::function<std::vector<double>()>;

/// The medians of several turns, by measurement. The measurements take turns.
std::vector<std::vector<double>> medians_of_turns(int turns, const std::vector<measurement>& measurements) {
  std::vector<std::vector<double>> all(measurements.size());
  for (int turn = 0; turn < turns; ++turn)
    for (std::size_t i = 0; i < all.size(); ++i) all[i].push_back(median(in_own_process(measurements[i])));
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

/// Troupe beside a peer, which take turns.
row beside(const std::vector<std::vector<double>>& found, double (*figure)(const std::vector<double>&)) {
  const auto peer = figure(found[0]);
  const auto ours = figure(found[1]);
  return {
    .value = {peer, ours, 0},
    .ratio = ours / peer,
    .spreads = {spread_of(found[0], peer), spread_of(found[1], ours), {}, spread_of(ratios(found[1], found[0]), ours / peer)}};
}

/// The figures are the least medians of the turns: what the code takes if nothing else runs.
row call_by_caf(carrier by, bool quick) {
  const int runs = quick ? 100 : 5'000;
  return beside(medians_of_turns(turns_of(quick), {[=] { return caf_requests(runs); }, [=] { return small_calls(by, runs); }}),
                least);
}

row call_through_memory(bool quick) {
  const int runs = quick ? 100 : 5'000;
  const auto found = medians_of_turns(
    turns_of(quick), {[=] { return spinning_exchanges(runs); }, [=] { return small_calls(carrier::shared_memory, runs); }});
  const auto floor = least(found[0]);
  const auto ours = least(found[1]);
  return {.value = {0, ours, floor},
          .ratio = ours,
          .note = "ratio: microseconds",
          .spreads = {{}, spread_of(found[1], ours), spread_of(found[0], floor), spread_of(found[1], ours)}};
}

/// A figure of several turns as a row: its ratio is the figure.
row alone(const std::vector<double>& turns, double figure, std::string note) {
  const auto spread = spread_of(turns, figure);
  return {.value = {0, figure, 0}, .ratio = figure, .note = std::move(note), .spreads = {{}, spread, {}, spread}};
}

/// Three figures of a measurement in several turns as a row: peer, troupe and ratio.
row three(const measured_turns& found, std::string note) {
  const auto spread = [&](std::size_t figure) { return spread_of(found.all(figure), found.median(figure)); };
  return {.value = {found.median(0), found.median(1), 0},
          .ratio = found.median(2),
          .note = std::move(note),
          .spreads = {spread(0), spread(1), {}, spread(2)}};
}

row late_heartbeat(bool quick) {
  const measured_turns found(quick ? 1 : 3, [=] {
    auto late = late_ones(times_of_answers(quick ? 10 : 300, true), {100, 2});
    for (auto& us : late) us /= 1e3;
    return late;
  });
  return alone(found.all(0), found.median(0), "ratio: milliseconds; median " + std::to_string(found.median(1)));
}

row fair_passes(bool quick) {
  const measured_turns found(quick ? 1 : 3, [=] {
    const auto times = times_of_passes(quick ? 20 : 1'000);
    const auto slowest = *std::max_element(times.begin(), times.end());
    return std::vector{median(times), slowest, slowest / median(times)};
  });
  return three(found, "peer: the median");
}

/// Bytes of idle things: the largest of the figures from `first` to `last` that a measurement returns.
row idle(const std::function<std::vector<double>(int)>& bytes_of, std::size_t first, std::size_t last, int count, bool quick) {
  const measured_turns found(quick ? 1 : 3, [&] { return bytes_of(quick ? std::max(4, count / 100) : count); });
  auto most = first;
  for (auto each = first; each <= last; ++each)
    if (found.median(each) > found.median(most)) most = each;
  const auto bytes = std::max(found.median(most), 1.0);
  std::string note;
  if (last > first)
    note = "the one node " + std::to_string(static_cast<long>(found.median(first))) + ", the other " +
           std::to_string(static_cast<long>(found.median(last)));
  return alone(found.all(most), bytes, std::move(note));
}

/// What small calls take beside CAF, their headers and their tensors, where 16 are under way, so that no thread has to wake. Both processes
/// work at once then: together they have worked for twice the time.
row layers(bool quick) {
  const int runs = quick ? 20 : 2'000;
  const measured_turns found(turns_of(quick), [=] {
    const auto layers = layers_of_call(runs);
    const auto whole = 2 * percentile(calls_together({}, 16, runs / 10), 0.5);
    const auto known = layers.caf + layers.headers + layers.tensors;
    return std::vector{known, whole, std::max(0.01, (whole - known) / whole), layers.caf, layers.headers, layers.tensors};
  });
  char note[160];
  std::snprintf(note, sizeof note, "ratio: the rest by the whole; us: CAF %.1f, headers %.1f, tensors %.1f", found.median(3),
                found.median(4), found.median(5));
  return three(found, note);
}

/// The row whose ratio is the worst for its bar: the smallest or the largest.
row worst(const std::vector<row>& all, bool is_smallest) {
  return *std::min_element(all.begin(), all.end(), [&](const row& one, const row& other) {
    return is_smallest ? one.ratio < other.ratio : one.ratio > other.ratio;
  });
}

row training(bool quick) {
  if (!has_pipelining())
    throw skipped("expected a Python with PyTorch " TROUPE_TORCH_VERSION
                  "; `make test-python` installs one, or set TROUPE_PYTHON");
  const training_size what{.steps = quick ? 4 : 6, .quick = quick};
  const std::vector<std::string> both{"1f1b", "zero-bubble"};
  const auto ours = [=] { return std::vector{tokens_of_troupe(what, false)[0]}; };
  bool is_first = true;
  std::vector<std::vector<double>> found{{}, {}};
  if (!quick) {  // the first turn asks both schedules, the others the better one
    const auto rates = in_own_process([&] { return tokens_of_pipelining(what, both); });
    is_first = rates[0] >= rates[1];
    found = {{std::max(rates[0], rates[1])}, in_own_process(ours)};
  }
  const std::vector<std::string> better{both[is_first ? 0 : 1]};
  const auto peer = [=] { return tokens_of_pipelining(what, better); };
  const auto later = medians_of_turns(quick ? 1 : turns_of(quick) - 1, {peer, ours});
  for (std::size_t i = 0; i < found.size(); ++i) found[i].insert(found[i].end(), later[i].begin(), later[i].end());
  auto result = beside(found, median);
  result.note = is_first ? "peer: Schedule1F1B" : "peer: ScheduleInterleavedZeroBubble";
  return result;
}

/// The schedule whose steps take the longest, beside steps with the bubble of the formula.
row schedules(bool quick) {
  const training_size what{.steps = quick ? 4 : 7, .quick = quick};
  std::vector<row> all;
  std::string text;
  for (const std::string schedule : {"gpipe", "1f1b", "zero-bubble"}) {
    const measured_turns found(quick ? 1 : 3, [=] {
      const auto bubbles = bubbles_of_troupe(what, schedule);
      return std::vector{100 * bubbles[1], 100 * bubbles[0], (1 - bubbles[1]) / (1 - bubbles[0])};
    });
    all.push_back(three(found, schedule));
    char each[64];
    std::snprintf(each, sizeof each, ", %s %.1f (%.1f)", schedule.c_str(), found.median(1), found.median(0));
    text += each;
  }
  auto result = worst(all, false);
  result.note = "worst: " + result.note + "; all" + text.substr(1);
  return result;
}

/// A few runs for large sizes. At least 12 up to 16 MiB: gRPC needs 7 to 18 ms for 16 MiB, and one quick answer must not decide.
int runs_of_size(std::size_t bytes, bool quick) {
  constexpr std::size_t medium = std::size_t{16} << 20;
  return quick ? 2 : std::clamp(static_cast<int>(medium / bytes), bytes <= medium ? 12 : 4, 300);
}

/// Bytes there and back by size. CAF is left out where it takes several times as long as gRPC, and by TLS.
row size_ladder(carrier by, bool quick) {
  constexpr std::size_t largest_of_caf = std::size_t{4} << 20;
  if (by == carrier::tls && !has_grpc()) throw skipped("expected gRPC, which `make deps` installs");
  std::vector<ladder_step> steps;
  for (const auto bytes : sizes_of_ladder(quick)) {
    const int runs = runs_of_size(bytes, quick);
    std::vector<measurement> all{[=] { return echo_calls(by, runs, bytes); }};
    if (has_grpc()) all.push_back([=] { return grpc_calls(by, runs, bytes); });
    if (by != carrier::tls) all.push_back([=] { return tensorpipe_calls(by, runs, bytes); });
    if (by != carrier::tls && (bytes <= largest_of_caf || !has_grpc()))
      all.push_back([=] { return caf_requests(runs, bytes); });
    const auto found = medians_of_turns(turns_of_ladder(bytes, quick), all);
    auto peer = least(found[1]);
    for (std::size_t i = 2; i < found.size(); ++i) peer = std::min(peer, least(found[i]));
    steps.push_back({bytes, peer, least(found[0])});
  }
  return row_of_ladder(steps);
}

row beside_floor(std::size_t bytes, carrier by, bool quick) {
  const auto floor =
    by == carrier::tcp ? tcp_exchanges : [](int runs, std::size_t size) { return spinning_exchanges(runs, size); };
  const int runs = quick ? 2 : 12;
  auto result =
    beside(medians_of_turns(turns_of(quick), {[=] { return floor(runs, bytes); }, [=] { return echo_calls(by, runs, bytes); }}),
           median);
  result.note = size_text(bytes);
  return result;
}

row bulk_tcp(bool quick) {
  constexpr std::size_t mebibyte = 1 << 20;
  return worst({beside_floor(16 * mebibyte, carrier::tcp, quick), beside_floor(64 * mebibyte, carrier::tcp, quick)}, false);
}

row after_pause(bool quick) {
  std::vector<row> all;
  for (const auto pause : {std::chrono::milliseconds(10), std::chrono::milliseconds(100)}) {
    const int runs = quick ? 2 : 10;
    all.push_back(beside(medians_of_turns(turns_of(quick), {[=] { return caf_requests(runs, small_message, pause); },
                                                            [=] { return answers_after_pauses(pause, false, runs); }}),
                         least));
    all.back().note = std::to_string(pause.count()) + " ms";
  }
  return worst(all, false);
}

/// A pass in which each node of a process calls each other one: what a link takes among many nodes and among 8.
row all_to_all(bool quick) {
  const auto us_of_link = [=](std::size_t nodes) {
    return [=] {
      auto taken = all_to_all_ms(nodes, quick ? 1 : 5);
      for (auto& ms : taken) ms *= 1e3 / static_cast<double>(nodes * (nodes - 1));
      return taken;
    };
  };
  return beside(medians_of_turns(quick ? 1 : 3, {us_of_link(8), us_of_link(quick ? 9 : 64)}), median);
}

std::vector<row_definition> suite_rows() {
  const auto by = [](carrier each) { return [=](bool quick) { return call_by_caf(each, quick); }; };
  const auto idles = [](auto bytes_of, std::size_t first, std::size_t last, int count) {
    return [=](bool quick) { return idle(bytes_of, first, last, count, quick); };
  };
  return {
    {"small_call_over_caf", "us", at_most(1.25),
     "A small call over CAF's network; peer: a request of bare CAF with as many bytes.", by(carrier::caf)},
    {"small_call_own_network", "us", at_most(1.0),
     "A small call over troupe's network; peer: a request of bare CAF over CAF's network.", by(carrier::tcp)},
    {"small_call_memory", "us", at_most(12),
     "A small call through shared memory; floor: two processes that watch shared memory; ratio in µs.", call_through_memory},
    {"size_ladder_memory", "us", at_least(1.0),
     "A call with 64 B to 256 MiB through shared memory, at the worst size; peer: the best one of gRPC over TCP, CAF "
     "over TCP, and TensorPipe with what it chooses within a machine.",
     [](bool quick) { return size_ladder(carrier::shared_memory, quick); }},
    {"size_ladder_tcp", "us", at_least(1.0), "The same over TCP, with TensorPipe over TCP.",
     [](bool quick) { return size_ladder(carrier::tcp, quick); }},
    {"size_ladder_tls", "us", at_least(1.0), "The same by TLS; peer: gRPC, with the same certificates.",
     [](bool quick) { return size_ladder(carrier::tls, quick); }},
    {"bulk_memory", "us", at_most(1.6), "64 MiB within a machine and back; peer: shared memory that both processes watch.",
     [](bool quick) { return beside_floor(std::size_t{64} << 20, carrier::shared_memory, quick); }},
    {"bulk_tcp", "us", at_most(1.2), "16 and 64 MiB over TCP and back, the worse one; peer: bare TCP.", bulk_tcp},
    {"after_pause", "us", at_most(0.9),
     "A question through shared memory after 10 and 100 ms, the worse one; peer: a request of CAF over TCP.", after_pause},
    {"all_to_all_64", "us", at_most(1.5),
     "A link of a backward pass in which each of 64 nodes of a process calls each other one; peer: the same among 8.",
     all_to_all},
    {"heartbeat_late", "ms", at_most(20), "99th percentile of a heartbeat's way while all cores compute; ratio in ms.",
     late_heartbeat},
    {"fairness", "ms", at_most(2), "The slowest of 1,000 equal passes that start together; peer: their median.", fair_passes},
    {"idle_context", "bytes", at_most(2'048), "Memory of a context that is open and does nothing; ratio in bytes.",
     idles(bytes_of_context, 0, 1, 8'000)},
    {"idle_object", "bytes", at_most(512), "Memory of a small object that a node holds for another; ratio in bytes.",
     idles(bytes_of_object, 0, 1, 4'000)},
    {"idle_actor", "bytes", at_most(2'048), "Memory of an actor of CAF that is scheduled and does nothing; ratio in bytes.",
     idles(bytes_of_actor, 0, 0, 10'000)},
    {"idle_thread_actor", "bytes", at_most(65'536),
     "Memory of an actor of CAF with a thread of its own that does nothing; ratio in bytes.",
     idles(bytes_of_actor, 1, 1, 10'000)},
    {"idle_node", "bytes", at_most(1 << 20),
     "Memory of a node that has met no other, among many of one process; ratio in bytes.", idles(bytes_of_node, 0, 0, 64)},
    {"idle_connection", "bytes", at_most(1 << 18), "Memory of a connection to an idle node of another process; ratio in bytes.",
     idles(bytes_of_node, 1, 1, 64)},
    {"small_call_layers", "us", at_most(0.97),
     "The work of both processes for a small call; peer: what CAF, headers and tensors take, each measured alone; ratio: the "
     "share of the rest.",
     layers},
    {"training_pipelining", "tokens/s", at_least(1.05),
     "Tokens per second of the example; peer: PyTorch's pipelining over gloo with the same model, its best schedule.",
     training},
    {"training_schedules", "%", at_most(1.1),
     "The bubble of the example; peer: the formula of its schedule; ratio: a step beside one with that bubble, the worst.",
     schedules},
  };
}

std::vector<plot_definition> suite_plots() {
  return joined<plot_definition>(
    {message_plots(), actor_plots(), scheduling_plots(), grain_plots(), shape_plots(), memory_plots(), training_plots()});
}

/// The names of rows and plots, for --help.
std::string list_of_names() {
  std::string text = "Rows:\n";
  for (const auto& each : suite_rows())
    text += "  " + each.name + std::string(24 - std::min<std::size_t>(each.name.size(), 23), ' ') + each.text + "\n";
  text += "\nPlots:";
  std::size_t count = 0;
  for (const auto& each : suite_plots()) text += (count++ % 4 == 0 ? "\n  " : ", ") + each.name;
  return text + "\n\n" + example;
}

int measure_suite(const bench_choice& how) {
  auto rows = suite_rows();
  auto plots = suite_plots();
  keep_only(how.only, rows, plots);
  const auto found = measure_each(rows, plots, how.quick);
  write_measured(found, how.folder, "suite", "peer");
  return found.is_whole ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return run({.name = "suite_bench",
              .what_it_does = what_it_does,
              .footer = list_of_names(),
              .files = "suite.json, suite.txt and suite.curves.json",
              .run = measure_suite},
             argc, argv);
}
