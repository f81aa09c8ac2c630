// SPDX-License-Identifier: BSD-3-Clause
// The parts of suite_bench that are programs of their own: trainings, and gRPC.
#include "trainings.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <stdexcept>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "apps/process_group.hpp"

#include "../support/grpc_calls.hpp"
#include "../support/scratch_folder.hpp"
#include "exchanges.hpp"

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

void add(std::vector<std::string>& to, std::initializer_list<std::string> more) { to.insert(to.end(), more); }

void add_size(std::vector<std::string>& to, const training_size& what) {
  add(to, {"--stages", std::to_string(what.stages), "--steps", std::to_string(what.steps)});
  if (what.quick)
    add(to, {"--blocks", "2", "--width", "16", "--heads", "2", "--context", "16", "--batch", "8", "--micro-batches", "4"});
}

}  // namespace

std::vector<double> tokens_of_troupe(const training_size& what, bool compare) {
  const scratch_folder out;
  std::vector<std::string> arguments{TROUPE_PROGRAM_FILE, "train", "--out", out.path().string(), "--no-trace"};
  add_size(arguments, what);
  add(arguments, {"--verify-steps", "0", "--sample", "0", "--validate-every", "1000000", "--checkpoint-every", "1000000"});
  add(arguments, {"--single-process-seconds", compare ? "6" : "0"});
  lines_of("troupe train", arguments);
  std::ifstream file(out.path() / "summary.json");
  const auto summary = nlohmann::json::parse(file);
  return {summary.at("tokens_per_second").get<double>(), summary.at("single_process_tokens_per_second").get<double>()};
}

std::vector<double> tokens_of_pipelining(const training_size& what, const std::string& python) {
  std::vector<std::string> arguments{python, TROUPE_BENCH_DIR "/peers/torch_pipelining.py"};
  add_size(arguments, what);
  for (const auto& line : lines_of("torch_pipelining.py", arguments))
    if (line.starts_with("{")) return {nlohmann::json::parse(line).at("tokens_per_second").get<double>()};
  throw std::runtime_error("torch_pipelining.py ended without a line of JSON");
}

std::vector<double> grpc_calls(int runs, std::size_t bytes) {
  return times_of_grpc(lines_of("grpc_echo", {grpc_program(), std::to_string(bytes), std::to_string(runs)}), runs);
}

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

}  // namespace troupe::bench
