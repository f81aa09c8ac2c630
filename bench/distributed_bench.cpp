// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include "distributed_rows.hpp"
#include "other_process.hpp"
#include "peers/torch_rpc.hpp"
#include "report.hpp"
#include "tcp_floor.hpp"
#include "troupe_rpc.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Measures calls and distributed backward passes between processes on loopback, on PyTorch's own TensorPipe agent and "
  "distributed engine and on troupe, in turns, and prints a table of medians: ratio is PyTorch's time by troupe's, floor a "
  "bare TCP "
  "ping-pong of as many bytes and round trips. Rows that PyTorch has no counterpart for show troupe's own figures: "
  "smart_over_fast "
  "fast mode's time by smart mode's, nodes_* the cost of a node by that of one of two, contexts_* MiB. Also writes "
  "distributed.json "
  "and distributed.txt.";
constexpr const char* example = "Example: distributed_bench --only small_call backward_4 --out out/bench";

/// A folder of this run alone, gone at the end.
struct own_folder {
  own_folder() : path(std::filesystem::temp_directory_path() / ("troupe_bench_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~own_folder() { remove(); }
  void remove() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

void run(const std::vector<definition>& chosen, bool quick, const std::string& folder) {
  own_folder meeting;
  const auto file = (meeting.path / "store").string();
  std::vector<std::unique_ptr<other_process>> torch;
  std::vector<std::unique_ptr<other_process>> troupe;
  for (int place = 1; place < chain_length; ++place) {
    torch.push_back(std::make_unique<other_process>([&](int stop, const auto&) { serve_torch(file, place, stop); }));
    troupe.push_back(std::make_unique<other_process>([place](int stop, const auto& tell) { serve_troupe(place, tell, stop); }));
  }
  other_process echo([](int, const auto& tell) { serve_echo(tell); });
  at::set_num_threads(1);
  for (const auto& each : torch) each->watch("PyTorch", [&] { meeting.remove(); });
  for (const auto& each : troupe) each->watch("troupe", [&] { meeting.remove(); });
  std::vector<std::uint16_t> ports;
  for (const auto& each : troupe) ports.push_back(each->told());
  auto ours = make_troupe_driver(ports);
  auto theirs = make_torch_driver(file);
  const auto end_torch = [&] {  // PyTorch's agents end together
    for (const auto& each : torch) each->stop();
    theirs.reset();
  };
  auto floor = std::make_unique<tcp_floor>(echo.told());
  std::vector<row> all;
  try {
    for (const auto& each : chosen) {
      std::fprintf(stderr, "%s\n", each.name.c_str());
      all.push_back(each.measure({*theirs, *ours, *floor, ports.front(), quick}));
    }
  } catch (...) {
    end_torch();
    throw;
  }
  end_torch();
  floor.reset();  // ends the one that echoes
  std::printf("%s", table_of(all).c_str());
  std::fflush(stdout);
  write_report(folder, "distributed", all);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a child that has ended already is told to end
  CLI::App app{what_it_does};
  app.footer(example);
  std::vector<std::string> only;
  std::string folder = "out/bench";
  bool quick = false;
  app.add_option("--only", only, "measure these rows");
  app.add_option("--out", folder, "where to write distributed.json and distributed.txt")->capture_default_str();
  app.add_flag("--quick", quick, "two runs a row: to see that it works");
  CLI11_PARSE(app, argc, argv);
  try {
    auto chosen = distributed_rows();
    for (const auto& name : only)
      if (std::none_of(chosen.begin(), chosen.end(), [&](const auto& each) { return each.name == name; })) {
        std::string known;
        for (const auto& each : chosen) known += ' ' + each.name;
        throw std::runtime_error("there is no row '" + name + "'; there are" + known);
      }
    if (!only.empty())
      std::erase_if(chosen, [&](const auto& each) { return std::find(only.begin(), only.end(), each.name) == only.end(); });
    run(chosen, quick, folder);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "distributed_bench: %s\n", failed.what());
    return 1;
  }
  return 0;
}
