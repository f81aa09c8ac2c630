// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include "other_process.hpp"
#include "peers/torch_rpc.hpp"
#include "report.hpp"
#include "troupe_rpc.hpp"

using namespace troupe::bench;

namespace {

constexpr const char* what_it_does =
  "Measures calls and distributed backward passes between two processes on loopback, on PyTorch's own TensorPipe agent and "
  "distributed engine and on troupe, in turns, and prints a table of medians: ratio is PyTorch's time by troupe's. Also writes "
  "distributed.json and distributed.txt.";
constexpr const char* example = "Example: distributed_bench --only small_call backward_4 --out out/bench";

using seconds = std::chrono::duration<double>;

template <class Run>
double seconds_of(Run&& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return seconds(std::chrono::steady_clock::now() - begin).count();
}

/// One run of a row: returns the seconds of what the row measures.
using measured_run = std::function<double(round_trips&)>;

struct definition {
  std::string name;
  double bar;
  int runs;  // of each of the two
  measured_run run;
};

at::Tensor leaf(std::int64_t elements = 1) { return at::ones({elements}).requires_grad_(); }

void expect(const at::Tensor& gradient, double value) {
  if (!gradient.defined() || gradient.flatten()[0].item<double>() != value)
    throw std::runtime_error("the gradient is wrong: expected " + std::to_string(value));
}

double small_call(round_trips& driver) {
  const auto x = at::ones({1});
  return seconds_of([&] { driver.call(x); });
}

double context_call_backward(round_trips& driver) {
  const auto x = leaf();
  return seconds_of([&] {
    driver.open();
    driver.backward(driver.call(x).sum());
    driver.close();
  });
}

measured_run backward_over(int trips) {
  return [trips](round_trips& driver) {
    driver.open();
    const auto x = leaf();
    auto y = x;
    for (int i = 0; i < trips; ++i) y = driver.call(y);
    const auto root = y.sum();
    const auto taken = seconds_of([&] { driver.backward(root); });
    expect(driver.gradient(x), static_cast<double>(1 << trips));
    driver.close();
    return taken;
  };
}

double in_flight(round_trips& driver) {
  constexpr int calls = 16;
  const auto x = leaf();
  driver.open();
  const auto taken = seconds_of([&] {
    auto all = driver.call_at_once(x, calls);
    driver.backward(at::stack(all).sum());
  });
  expect(driver.gradient(x), 2 * calls);
  driver.close();
  return taken;
}

measured_run large_tensor(std::int64_t mebibytes) {
  return [mebibytes](round_trips& driver) {
    const auto x = leaf(mebibytes * 1024 * 256);
    driver.open();
    const auto taken = seconds_of([&] { driver.backward(driver.call(x).sum()); });
    expect(driver.gradient(x), 2);
    driver.close();
    return taken;
  };
}

std::vector<definition> rows() {
  return {{"small_call", 1.5, 3000, small_call},        {"context_call_backward", 3, 1000, context_call_backward},
          {"backward_1", 3.5, 1000, backward_over(1)},  {"backward_4", 3, 500, backward_over(4)},
          {"backward_16", 3.5, 200, backward_over(16)}, {"in_flight_16", 3, 300, in_flight},
          {"tensor_1mib", 1, 200, large_tensor(1)},     {"tensor_16mib", 1, 40, large_tensor(16)}};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// In turns, a few runs at a time, so that what else the machine does meets both.
row measure(const definition& what, round_trips& peer, round_trips& troupe, int runs) {
  constexpr int turn = 10;
  std::vector<double> theirs;
  std::vector<double> ours;
  for (int done = 0; done < runs; done += turn) {
    const auto begin = done == 0 ? -2 : 0;  // the first ones warm up
    for (int i = begin; i < std::min(turn, runs - done); ++i)
      if (const auto taken = what.run(peer); i >= 0) theirs.push_back(taken);
    for (int i = begin; i < std::min(turn, runs - done); ++i)
      if (const auto taken = what.run(troupe); i >= 0) ours.push_back(taken);
  }
  row result{.name = what.name, .unit = "us", .value = {}, .bar = what.bar};
  result.value.peer = median(theirs) * 1e6;
  result.value.troupe = median(ours) * 1e6;
  result.ratio = result.value.peer / result.value.troupe;
  return result;
}

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
  other_process torch_server([&](int stop, const auto&) { serve_torch(file, stop); });
  other_process troupe_server([](int stop, const auto& tell) { serve_troupe(tell, stop); });
  at::set_num_threads(1);
  torch_server.watch("PyTorch", [&] { meeting.remove(); });
  troupe_server.watch("troupe", [&] { meeting.remove(); });
  const auto troupe = make_troupe_driver(troupe_server.told());
  auto peer = make_torch_driver(file);
  std::vector<row> all;
  for (const auto& each : chosen) {
    std::fprintf(stderr, "%s\n", each.name.c_str());
    all.push_back(measure(each, *peer, *troupe, quick ? 2 : each.runs));
  }
  torch_server.stop();  // PyTorch's agents end together
  peer.reset();
  std::printf("%s", table_of(all).c_str());
  std::fflush(stdout);
  write_report(folder, "distributed", all);
}

}  // namespace

int main(int argc, char** argv) {
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
    auto chosen = rows();
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
