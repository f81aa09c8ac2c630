// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "comparison.hpp"
#include "../support/json_file.hpp"
#include "machine.hpp"
#include "report_page.hpp"
#include "results.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Makes one page, report.html, of all figures that benchmarks have written into a folder, and prints one table of ratios. "
  "--compare says instead which rows of two runs differ beyond the noise. Status 1: a row got worse; 2: a file could not be "
  "read or written.";
constexpr const char* example = "Example: bench_report --compare out/before out/bench";

const versions built_with{TROUPE_VERSION,       TROUPE_BUILD_TYPE,  TROUPE_COMPILER,
                          TROUPE_TORCH_VERSION, TROUPE_CAF_VERSION, TROUPE_OPENSSL_VERSION};

struct chosen {
  std::string folder = "out/bench";
  std::vector<std::string> compare{};
  double noise_percent = 5;
  bool all = false;
  bool machine = false;
  bool quick = false;
  std::string commit{};
};

int note_machine(const chosen& options) {
  auto where = this_machine(built_with);
  where.quick = options.quick;
  where.commit = options.commit;
  write_machine(options.folder, where);
  return 0;
}

int compare_runs(const chosen& options) {
  const auto [before, after] = read_both(options.compare[0], options.compare[1]);
  const auto rows = compare(before.reports, after.reports, options.noise_percent / 100);
  std::printf("%s%s", differences_of(before, after).c_str(), comparison_as_text(rows, options.all).c_str());
  return std::any_of(rows.begin(), rows.end(), [](const auto& each) { return each.what == verdict::worse; }) ? 1 : 0;
}

int make_page(const chosen& options) {
  const auto found = read_results(options.folder);
  const auto page = std::filesystem::path(options.folder) / "report.html";
  write_text(page, page_of(found));
  std::printf("%swritten to %s\n", found.reports.empty() ? "" : ratios_as_text(found.reports).c_str(), page.c_str());
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app{what_it_does, "bench_report"};
  app.footer(example);
  chosen options;
  app.add_option("--folder", options.folder, "Folder of the figures; report.html is written into it")->capture_default_str();
  auto* compare = app.add_option("--compare", options.compare, "Two runs, OLD and NEW: two folders, or two files NAME.json")
                    ->expected(2)
                    ->type_name("OLD NEW");
  app.add_option("--noise", options.noise_percent, "With --compare: smaller changes of a ratio never count, in percent")
    ->needs(compare)
    ->check(CLI::Range(0.0, 1000.0))
    ->capture_default_str();
  app.add_flag("--all", options.all, "With --compare: also print rows that are the same")->needs(compare);
  auto* machine = app.add_flag("--machine", options.machine, "Write machine.json, before the benchmarks run, and nothing else")
                    ->excludes(compare);
  app.add_flag("--quick", options.quick, "With --machine: the figures will be those of a quick run")->needs(machine);
  app.add_option("--commit", options.commit, "With --machine: the commit that is measured")->needs(machine);
  CLI11_PARSE(app, argc, argv);
  if (!options.compare.empty()) return compare_runs(options);
  return options.machine ? note_machine(options) : make_page(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "bench_report: %s\n", failed.what());
  } catch (...) {
    std::fputs("bench_report: an exception of an unknown type\n", stderr);
  }
  return 2;
}
