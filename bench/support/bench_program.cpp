// SPDX-License-Identifier: BSD-3-Clause
#include "bench_program.hpp"

#include <csignal>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

namespace troupe::bench {

namespace {

int parse_and_run(const bench_program& program, int argc, char** argv) {
  CLI::App app{program.what_it_does, program.name};
  app.footer(program.footer);
  bench_choice choice;
  app.add_option("--only", choice.only, "Names of what to measure (default: all)");
  app.add_option("--out", choice.folder, "Folder for " + program.files)->capture_default_str();
  app.add_flag("--quick", choice.quick, "As little as possible: checks that it works, measures nothing");
  if (program.add_options) program.add_options(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& mistake) {
    throw wrong_arguments(std::string(mistake.what()) + " (see '" + program.name + " --help')");
  }
  return program.run(choice);
}

/// Runs `measure`, which returns what to say of its result.
bool measured_without_failure(const std::string& name, const std::function<std::string()>& measure) {
  std::fprintf(stderr, "-- %s\n", name.c_str());
  const auto begin = std::chrono::steady_clock::now();
  try {
    const auto said = measure();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "-- %s: %s%.0f s\n", name.c_str(), said.c_str(), taken.count());
    return true;
  } catch (const skipped& why) {
    std::fprintf(stderr, "%s: skipped: %s\n", name.c_str(), why.what());
    return true;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: not measured: %s\n", name.c_str(), problem.what());
    return false;
  }
}

}  // namespace

int run(const bench_program& program, int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write to a child that has ended must not end this process
  try {
    return parse_and_run(program, argc, argv);
  } catch (const wrong_arguments& mistake) {
    std::fprintf(stderr, "%s: %s\n", program.name.c_str(), mistake.what());
    return 2;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "%s: %s\n", program.name.c_str(), failed.what());
  } catch (...) {
    std::fprintf(stderr, "%s: an exception of an unknown type\n", program.name.c_str());
  }
  return 1;
}

std::vector<plot_definition> plots_of_group(const std::string& group, std::vector<plot_definition> plots) {
  for (auto& each : plots) each.group = group;
  return plots;
}

measured measure_each(const std::vector<row_definition>& rows, const std::vector<plot_definition>& plots, bool quick) {
  measured all;
  for (const auto& each : rows)
    all.is_whole &= measured_without_failure(each.name, [&] {
      const auto& made = all.rows.emplace_back(labelled(each.measure(quick), each));
      char said[64];
      std::snprintf(said, sizeof said, "%.3g, %s, ", made.ratio, made.holds() ? "ok" : "short");
      return std::string(said);
    });
  for (const auto& each : plots)
    all.is_whole &= measured_without_failure(each.name, [&] {
      auto made = each.measure(quick);
      made.group = each.group;
      made.name = each.name;
      all.plots.push_back(std::move(made));
      return std::string();
    });
  return all;
}

void write_measured(const measured& what, const std::string& folder, const std::string& report, const std::string& peer,
                    bool adds) {
  if (!what.rows.empty()) {
    std::fputs(table_of(what.rows, peer).c_str(), stdout);
    std::fflush(stdout);
    (adds ? add_to_report : write_report)(folder, report, what.rows, peer);
  }
  if (!what.plots.empty()) write_curves(folder, report, what.plots);
  std::printf("written to %s/%s.*\n", folder.c_str(), report.c_str());
}

}  // namespace troupe::bench
