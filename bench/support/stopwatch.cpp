// SPDX-License-Identifier: BSD-3-Clause
#include "stopwatch.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>

#include <benchmark/benchmark.h>

#include "runs.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

const char* name_of(runner which) { return which == runner::peer ? "peer" : which == runner::troupe ? "troupe" : "floor"; }

/// Keeps the times that Google Benchmark reports, and prints nothing.
class collector final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) throw std::runtime_error(run.benchmark_name() + ": " + run.error_message);
      auto& times = series[run.run_name.function_name];
      times.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    }
  }

  std::map<std::string, std::vector<double>> series;
};

void time_runs(benchmark::State& state, const workload& work, runner which) {
  if (work.enter) work.enter(which);
  if (!work.before) {
    for (auto _ : state) work.run(which);
    return;
  }
  for (auto _ : state) {
    work.before();
    const auto start = clock::now();
    work.run(which);
    state.SetIterationTime(seconds_since(start));
  }
}

std::int64_t runs_in_a_series(const workload& work, runner which, double seconds) {
  if (work.enter) work.enter(which);
  double taken = 0;
  for (std::int64_t count = 1;; count *= 4) {
    const auto start = clock::now();
    for (std::int64_t i = 0; i < count; ++i) {
      if (work.before) work.before();
      work.run(which);
    }
    taken = seconds_since(start);
    if (taken >= seconds / 4)
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(count) * seconds / std::max(taken, 1e-9)));
  }
}

bool agree(std::vector<double> times) {
  if (times.size() < 3) return false;
  std::partial_sort(times.begin(), times.begin() + 3, times.end());
  return times[2] <= 1.02 * times[0];
}

}  // namespace

results measure(const std::string& name, const workload& work, const effort& spend) {
  benchmark::ClearRegisteredBenchmarks();
  const auto start = clock::now();
  for (const runner which : runners) {
    if (which == runner::floor && !work.has_floor) continue;
    const std::string title = name + "/" + name_of(which);
    auto* made =
      benchmark::RegisterBenchmark(title.c_str(), [&work, which](benchmark::State& state) { time_runs(state, work, which); });
    made->Iterations(runs_in_a_series(work, which, spend.series_seconds));
    work.before ? made->UseManualTime() : made->UseRealTime();
  }
  collector times;
  for (int round = 1;; ++round) {
    benchmark::RunSpecifiedBenchmarks(&times, name + "/.*");
    const bool settled =
      std::all_of(times.series.begin(), times.series.end(), [](const auto& each) { return agree(each.second); });
    if ((round >= spend.fewest_rounds && settled) || seconds_since(start) >= spend.most_seconds) break;
  }
  benchmark::ClearRegisteredBenchmarks();
  if (work.enter) work.enter(runner::peer);  // back to libtorch's engine, as at the start
  results best;
  for (const runner which : runners) {
    const auto found = times.series.find(name + "/" + name_of(which));
    if (found != times.series.end()) best[which] = *std::min_element(found->second.begin(), found->second.end());
  }
  return best;
}

}  // namespace troupe::bench
