// SPDX-License-Identifier: BSD-3-Clause
#include "row_program.hpp"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>

#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "bench_program.hpp"

namespace troupe::bench {

namespace {

/// Receives each allocation and release of libtorch's CPU allocator on the threads where it is set.
class meter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    current_ += bytes;
    peak_ = std::max(peak_, current_);
  }
  bool memoryProfilingEnabled() const override { return true; }

  void begin() { current_ = peak_ = 0; }
  std::int64_t peak() const { return peak_; }

 private:
  std::int64_t current_ = 0;
  std::int64_t peak_ = 0;
};

/// The peak, in bytes, of what libtorch's CPU allocator gives out on this thread during `run`, above the level at the start of
/// `run`. Memory that `prepare` has allocated counts as given back when `run` releases it.
std::size_t peak_memory(const std::function<void()>& prepare, const std::function<void()>& run) {
  const auto counts = std::make_shared<meter>();
  const c10::DebugInfoGuard set(c10::DebugInfoKind::PROFILER_STATE, counts);
  prepare();  // the allocator knows only the sizes of memory that was allocated while a meter was set
  counts->begin();
  run();
  return static_cast<std::size_t>(counts->peak());
}

/// Measures rows.
class table {
 public:
  table(std::vector<timed_row> rows, bool quick) : definitions_(std::move(rows)), spend_(quick ? effort::quick() : effort()) {}

  /// Measures a row once more and keeps the best result so far. The graph is made anew each time, because the address of a
  /// large graph in memory changes the cost of its pass by a quarter.
  void measure_once_more(const std::string& name) {
    const timed_row& row = definition(name);
    std::fprintf(stderr, "%s\n", name.c_str());
    try {
      results found = row.count ? row.count() : row.memory ? peaks(row.make()) : times(row);
      const auto [best, fresh] = values_.emplace(name, found);
      for (const runner which : runners) {
        best->second[which] = std::min(best->second[which], found[which]);
        sweeps_[name][which].push_back(found[which]);
      }
    } catch (const std::exception& failed) {
      throw std::runtime_error(name + ": " + failed.what());
    }
    if (!row.other.empty() && values_.count(row.other) == 0) measure_once_more(row.other);
  }

  row measured(const std::string& name) {
    const timed_row& from = definition(name);
    const auto& value = values_.at(name);
    const double ratio = from.compare == comparison::peer_over_troupe   ? value.peer / value.troupe
                         : from.compare == comparison::troupe_over_peer ? value.troupe / value.peer
                                                                        : value.troupe / values_.at(from.other).troupe;
    auto& sweeps = sweeps_.at(name);
    return labelled({.value = value,
                     .ratio = ratio,
                     .spreads = {.peer = spread_of(sweeps[runner::peer], value.peer),
                                 .troupe = spread_of(sweeps[runner::troupe], value.troupe),
                                 .floor = spread_of(sweeps[runner::floor], value.floor)}},
                    from);
  }

 private:
  const timed_row& definition(const std::string& name) const {
    return *std::find_if(definitions_.begin(), definitions_.end(), [&](const auto& each) { return each.name == name; });
  }

  static results peaks(const workload& work) {
    results found;
    for (const runner which : {runner::peer, runner::troupe})
      found[which] = static_cast<double>(peak_memory(work.before, [&] { work.run(which); })) / 1024;
    return found;
  }

  results times(const timed_row& row) const {
    results found = measure(row.name, row.make(), spend_);
    for (const runner which : runners) found[which] *= row.per_second;
    return found;
  }

  std::vector<timed_row> definitions_;
  effort spend_;
  std::map<std::string, results> values_;
  std::map<std::string, std::map<runner, std::vector<double>>> sweeps_;  // the results of each sweep
};

int measure_rows(const row_program& program, const bench_choice& how) {
  at::set_num_threads(1);
  auto chosen = program.rows(how.quick);
  table all(chosen, how.quick);
  keep_only(how.only, chosen);
  // Measures each row in several sweeps, so that a disturbance of the machine affects only one measurement of a row.
  const int sweeps = how.quick ? 1 : 4;
  for (int sweep = 1; sweep <= sweeps; ++sweep) {
    std::fprintf(stderr, "-- sweep %d of %d\n", sweep, sweeps);
    for (const auto& each : chosen) all.measure_once_more(each.name);
  }
  measured found;
  for (const auto& each : chosen) found.rows.push_back(all.measured(each.name));
  write_measured(found, how.folder, program.name, program.peer);
  return 0;
}

}  // namespace

int run(const row_program& program, int argc, char** argv) {
  const bench_program whole{.name = program.name + "_bench",
                            .what_it_does = program.what_it_does,
                            .footer = program.example,
                            .files = program.name + ".json and " + program.name + ".txt",
                            .run = [&](const bench_choice& how) { return measure_rows(program, how); }};
  return run(whole, argc, argv);
}

}  // namespace troupe::bench
