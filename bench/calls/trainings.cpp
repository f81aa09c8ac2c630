// SPDX-License-Identifier: BSD-3-Clause
// The measurements of suite_bench that are programs of their own: trainings, gRPC and TensorPipe.
#include "suite.hpp"

#include <cstdlib>
#include <fstream>
#include <future>
#include <mutex>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "apps/process_group.hpp"

#include "../support/peers.hpp"
#include "../support/train_options.hpp"

namespace troupe::bench {

namespace {

constexpr auto longest_run = std::chrono::minutes(10);
constexpr std::size_t last_lines = 20;

/// Runs a program to its end, and returns its lines. Throws std::runtime_error if it fails.
std::vector<std::string> lines_of(const std::string& name, const std::vector<std::string>& arguments) {
  std::mutex mutex;
  std::vector<std::string> lines;
  apps::process_group programs([&](const std::string&, const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  });
  programs.start(name, arguments);
  const auto end = programs.poll_for(longest_run);
  programs.stop_all(std::chrono::seconds(2));
  if (end && end->how == "exited with 0") return lines;
  std::string text = name + (end ? " " + end->how : " did not end in 10 minutes") + "; it wrote:";
  for (std::size_t i = lines.size() > last_lines ? lines.size() - last_lines : 0; i < lines.size(); ++i)
    text += "\n  " + lines[i];
  throw std::runtime_error(text);
}

/// Empty if there is none. It takes seconds to find out.
std::string python_with_torch() {
  const char* given = std::getenv("TROUPE_PYTHON");  // NOLINT(concurrency-mt-unsafe): no thread changes the environment
  const std::string python = given != nullptr ? given : TROUPE_BENCH_DIR "/../../build/python/bin/python";
  if (::access(python.c_str(), X_OK) != 0) return {};
  try {
    const auto lines = lines_of(python, {python, "-c", "import torch; print(torch.__version__.split('+')[0])"});
    return !lines.empty() && lines.back() == TROUPE_TORCH_VERSION ? python : std::string();
  } catch (const std::runtime_error&) {
    return {};
  }
}

const std::string& the_python() {
  static const std::string found = python_with_torch();
  return found;
}

words sized(words program, const training_size& what) {
  add(program, {"--stages", std::to_string(what.stages)});
  add(program, size_options(what.steps, what.quick));
  return program;
}

plot training_by_stages(bool quick) {
  plot made{"Training of the example, by the stages of its model",
            "Higher is better. More stages than cores cannot help.",
            {"stages, each in a process of its own", ""},
            {"tokens per second", ""}};
  curve alone{"one process, libtorch's engine and two threads", role::variant};
  curve ours{"troupe train", role::troupe};
  const std::vector<int> stages = quick ? std::vector{2} : std::vector{1, 2, 4};
  double of_one_process = 0;
  for (const int count : stages) {
    const training_size what{count, quick ? 4 : 8, quick};
    const bool compares = count == 2;  // a single process has as many threads as the training has stages
    const auto found = in_own_process([&] { return tokens_of_troupe(what, compares); });
    if (compares) of_one_process = found[1];
    ours.points.push_back({static_cast<double>(count), found[0]});
  }
  for (const int count : stages) alone.points.push_back({static_cast<double>(count), of_one_process});
  for (auto* line : {&alone, &ours})
    if (!line->points.empty()) made.curves.push_back(std::move(*line));
  made.default_x = 2;
  made.default_name = "troupe train --stages";
  return made;
}

}  // namespace

std::vector<plot_definition> training_plots() {
  return plots_of_group("training", {{"training_by_stages", training_by_stages}});
}

bool has_pipelining() { return !the_python().empty(); }

namespace {

/// Runs `troupe train` with more options. Returns its summary, and the tokens per second of each step.
std::pair<nlohmann::json, std::vector<double>> trained(const training_size& what, const words& more) {
  const scratch_folder out;
  auto arguments = sized({TROUPE_PROGRAM_FILE, "train", "--out", out.path().string()}, what);
  add(arguments, nothing_but_training());
  add(arguments, more);
  lines_of("troupe train", arguments);
  std::ifstream file(out.path() / "summary.json");
  std::ifstream metrics(out.path() / "metrics.jsonl");
  std::vector<double> rates;
  for (std::string line; std::getline(metrics, line);)
    if (const auto step = nlohmann::json::parse(line); step.contains("tokens_per_second"))
      rates.push_back(step.at("tokens_per_second").get<double>());
  return {nlohmann::json::parse(file), std::move(rates)};
}

}  // namespace

std::vector<double> tokens_of_troupe(const training_size& what, bool compare) {
  const auto [summary, rates] = trained(what, {"--single-process-seconds", compare ? "6" : "0"});
  return {percentile(rates, 0.5), summary.at("single_process_tokens_per_second").get<double>()};
}

std::vector<double> bubbles_of_troupe(const training_size& what, const std::string& schedule) {
  const auto summary = trained(what, {"--single-process-seconds", "0", "--schedule", schedule}).first;
  return {summary.at("bubble").get<double>(), summary.at("bubble_by_formula").get<double>()};
}

std::vector<double> tokens_of_pipelining(const training_size& what, const std::vector<std::string>& schedules) {
  words program{the_python(), TROUPE_BENCH_DIR "/peers/torch_pipelining.py", "--schedule"};
  add(program, schedules);
  std::vector<double> rates;
  for (const auto& line : lines_of("torch_pipelining.py", sized(program, what)))
    if (line.starts_with("{")) rates.push_back(nlohmann::json::parse(line).at("tokens_per_second").get<double>());
  if (rates.size() == schedules.size()) return rates;
  throw std::runtime_error("torch_pipelining.py ended with " + std::to_string(rates.size()) + " lines of JSON, expected " +
                           std::to_string(schedules.size()));
}

std::vector<double> grpc_calls(carrier by, int runs, std::size_t bytes) {
  const scratch_folder kits;
  words proof;
  if (by == carrier::tls) {
    make_kits(kits);
    proof.push_back(kit_in(kits, "b"));
  }
  std::promise<std::string> told;
  apps::process_group server([&, has_told = false](const std::string&, const std::string& line) mutable {
    if (line.starts_with("port ") && !std::exchange(has_told, true)) told.set_value(line.substr(5));
  });
  words serve{grpc_program(), "serve", "127.0.0.1"};
  add(serve, proof);
  server.start("grpc_echo", serve);
  auto port = told.get_future();
  if (port.wait_for(std::chrono::seconds(20)) != std::future_status::ready)
    throw std::runtime_error("grpc_echo does not serve");
  words ask{grpc_program(), "ask", "127.0.0.1:" + port.get(), std::to_string(bytes), std::to_string(runs)};
  add(ask, proof);
  return times_of_echo("grpc_echo", lines_of("grpc_echo", ask), runs);
}

std::vector<double> tensorpipe_calls(carrier by, int runs, std::size_t bytes) {
  const scratch_folder folder;
  const words both{folder.path() / "meeting", by == carrier::tcp ? "tcp" : "memory", "127.0.0.1"};
  words serve{tensorpipe_program(), "serve"};
  add(serve, both);
  words ask{tensorpipe_program(), "ask"};
  add(ask, both);
  add(ask, {std::to_string(bytes), std::to_string(runs)});
  std::mutex mutex;
  std::string last_of_server;
  apps::process_group server([&](const std::string&, const std::string& line) {
    const std::lock_guard lock(mutex);
    last_of_server = line;
  });
  server.start("tensorpipe_echo", serve);
  try {
    return times_of_echo("tensorpipe_echo", lines_of("tensorpipe_echo", ask), runs);
  } catch (const std::runtime_error& failed) {
    const std::lock_guard lock(mutex);
    throw std::runtime_error(failed.what() + std::string("\nThe side that answers wrote last: ") + last_of_server);
  }
}

}  // namespace troupe::bench
