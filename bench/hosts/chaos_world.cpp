// SPDX-License-Identifier: BSD-3-Clause
#include "chaos_world.hpp"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>

#include <nlohmann/json.hpp>

#include "../support/other_process.hpp"
#include "../support/train_options.hpp"
#include "host_process.hpp"
#include "host_training.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto time_to_come_back = 60s;
constexpr auto time_to_go_on = 60s;
constexpr auto time_to_end = 10s;
constexpr auto time_to_become_idle = 20s;
constexpr auto pause_between_looks = 100ms;
constexpr double spare_descriptors = 16;
constexpr double spare_threads = 16;
constexpr double spare_mib = 200;

/// Looks until the condition is true. False if it is not true after `patience`.
template <class Condition>
bool comes_true(Condition condition, std::chrono::milliseconds patience) {
  for (const auto until = clock::now() + patience; clock::now() < until; std::this_thread::sleep_for(pause_between_looks))
    if (condition()) return true;
  return condition();
}

std::vector<std::string> nodes() { return {"stage1", "stage2", "third"}; }

}  // namespace

chaos_world::chaos_world() : all_(hosts()) {
  nlohmann::json file{{"nodes", nlohmann::json::array()}};
  for (const auto* stage : {"stage1", "stage2"})
    file["nodes"].push_back({{"name", stage}, {"host", stage}, {"port", port_of_nodes}});
  std::ofstream(all_["driver"].folder() / "cluster.json") << file;
  for (const auto& each : nodes()) start_node(each);
  start_training(false);
  if (!comes_true([&] { return saved_step() > 0; }, time_to_go_on))
    throw std::runtime_error("the training writes no checkpoint; it wrote:" + last_words(process("driver")));
  for (const auto& each : nodes()) {
    const auto found = process_figures::of(process(each).pid());
    first_figures_[each] = {{"descriptors", found.descriptors}, {"threads", found.threads}, {"kib", found.resident_kib}};
  }
}

chaos_world::~chaos_world() {
  for (auto& [host, process] : processes_)
    if (process) process->signal(SIGCONT);
}

void chaos_world::start_node(const std::string& name) {
  // A node that starts again joins nobody: the others have to meet it. The first nodes of all join the first one.
  std::vector<std::string> more{"--heartbeat-ms", "100", "--forget-after", "3"};
  if (processes_.count(name) == 0 && name != "stage1")
    more.insert(more.end(), {"--join", "stage1:" + std::to_string(port_of_nodes)});
  processes_[name] = started_node(all_[name], name, port_of_nodes, more);
}

void chaos_world::start_training(bool resume) {
  words arguments{"train",   "--cluster",    "cluster.json", "--host",         "0.0.0.0", "--out",      "run", "--retry",
                  "1000000", "--retry-wait", "120",          "--heartbeat-ms", "100",     "--deadline", "30",  "--no-trace"};
  if (resume)
    add(arguments, {"--resume"});
  else
    add(arguments, {"--steps", "1000000000", "--checkpoint-every", "20", "--validate-every", "1000000000", "--blocks", "2",
                    "--width", "64", "--heads", "2", "--context", "32", "--batch", "16", "--micro-batches", "4"});
  add(arguments, {"--verify-steps", "0", "--single-process-seconds", "0", "--sample", "0"});
  const auto& on = all_["driver"];
  processes_["driver"].reset();  // the folder of the run has space for one
  processes_["driver"] = std::unique_ptr<hosts::program>(new hosts::program(on.troupe(arguments)));
}

std::int64_t chaos_world::saved_step() const {
  try {
    std::ifstream file(all_["driver"].folder() / "run" / "checkpoint" / "checkpoint.json");
    if (!file) return 0;
    return std::stoll(nlohmann::json::parse(file).at("about").at("step").at("integer").get<std::string>());
  } catch (const std::exception&) {
    return -1;  // a file that is not whole
  }
}

void chaos_world::count(int& what, const std::string& text) {
  ++what;
  std::fprintf(stderr, "   FAULT: %s\n", text.c_str());
}

/// Prints the last lines of each node. They help to find the cause of a fault.
void chaos_world::show_nodes() const {
  for (const auto& each : nodes())
    if (const auto& process = processes_.at(each))
      std::fprintf(stderr, "   %s:%s\n", each.c_str(), last_words(*process).c_str());
}

void chaos_world::kill(const std::string& host) {
  process(host).signal(SIGKILL);
  process(host).how_it_ends();
  processes_[host].reset();
}

void chaos_world::act(const chaos_event& event, bool begins) {
  switch (event.what) {
    case chaos_event::kind::kill:
      if (begins)
        kill(event.who);
      else if (event.who != "driver")  // a training that is started needs all of its stages
        start_node(event.who);
      break;
    case chaos_event::kind::freeze:
      process(event.who).signal(begins ? SIGSTOP : SIGCONT);
      break;
    case chaos_event::kind::unplug:
      begins ? all_.unplug(event.who) : all_.plug(event.who);
      break;
    case chaos_event::kind::cut:
      begins ? all_.cut(event.who, event.other) : all_.mend(event.who, event.other);
      break;
  }
}

/// The nodes that this node should hold for up, and does not.
std::vector<std::string> chaos_world::strangers_of(const std::string& name) const {
  auto missing = hosts();
  std::erase(missing, name);
  try {
    const auto status = all_[name].status("127.0.0.1:" + std::to_string(port_of_nodes));
    for (const auto& peer : status["peers"])
      if (peer["up"].get<bool>()) std::erase(missing, peer["name"].get<std::string>());
  } catch (const std::exception&) {
    // The node does not answer, so it is not back either.
  }
  return missing;
}

/// Starts the training again if it has ended.
void chaos_world::keep_training() {
  if (!processes_["driver"]) {
    training_may_fail_ = true;  // to start, a training needs all stages at once
    start_training(true);
    return;
  }
  const auto end = process("driver").how_it_ends(std::chrono::milliseconds(0));
  if (end == "still runs") return;
  if (!training_may_fail_) count(counts_.ended_runs, "the training " + end + ":" + last_words(process("driver")));
  processes_["driver"].reset();
}

void chaos_world::expect_recovery() {
  const auto begin = clock::now();
  const auto saved = saved_step();
  if (saved < last_saved_)
    count(counts_.lost_checkpoints, "the checkpoint was that of step " + std::to_string(last_saved_) + ", now it is that of " +
                                      std::to_string(saved) + " (-1: it can't be read)");
  last_saved_ = std::max(saved, last_saved_);
  const auto goes_on = [&] {
    keep_training();
    return saved_step() > last_saved_;
  };
  if (!comes_true(goes_on, time_to_go_on)) {
    count(counts_.hangs, "the training has not gone on from step " + std::to_string(last_saved_) + ":" +
                           (processes_["driver"] ? last_words(process("driver")) : " it can't be started"));
    show_nodes();
    if (processes_["driver"]) kill("driver");
    start_training(true);
  }
  training_may_fail_ = false;
  for (const auto& each : nodes()) {
    if (comes_true([&] { return strangers_of(each).empty(); }, time_to_come_back)) continue;
    std::string who;
    for (const auto& other : strangers_of(each)) who += " " + other;
    count(counts_.not_back, each + " has not met again:" + who);
    show_nodes();
  }
  std::fprintf(stderr, "   back after %.1f s, at step %lld\n", std::chrono::duration<double>(clock::now() - begin).count(),
               static_cast<long long>(saved_step()));
}

void chaos_world::expect_end(hosts::program& of, const std::string& name, const std::string& how) {
  if (const auto end = of.how_it_ends(time_to_end); end != how)
    count(counts_.hangs, name + " " + end + ", expected " + how + ":" + last_words(of));
}

void chaos_world::look_for_leaks(const std::string& name) {
  nlohmann::json left;
  const auto is_idle = [&] {
    left.clear();
    try {
      const auto status = all_[name].status("127.0.0.1:" + std::to_string(port_of_nodes));
      for (const auto* what : {"/contexts/open", "/passes/running", "/passes/graph_tasks", "/calls_made/waiting",
                               "/calls_run/running", "/calls_run/queued", "/objects"})
        if (const auto number = status.at(nlohmann::json::json_pointer(what)).get<std::int64_t>(); number != 0)
          left[what] = number;
    } catch (const std::exception& problem) {
      left["status"] = problem.what();
    }
    return left.empty();
  };
  if (!comes_true(is_idle, time_to_become_idle)) count(counts_.leaks, name + " has left: " + left.dump());
  const auto now = process_figures::of(process(name).pid());
  const auto& first = first_figures_.at(name);
  const auto expect_at_most = [&](const char* what, double number, double most) {
    if (number > most)
      count(counts_.leaks, name + " has " + std::to_string(number) + " " + what + ", expected at most " + std::to_string(most));
  };
  expect_at_most("descriptors", static_cast<double>(now.descriptors), first.at("descriptors") + spare_descriptors);
  expect_at_most("threads", static_cast<double>(now.threads), first.at("threads") + spare_threads);
  expect_at_most("MiB", static_cast<double>(now.resident_kib) / 1024, first.at("kib") / 1024 + spare_mib);
}

void chaos_world::finish() {
  process("driver").signal(SIGINT);
  expect_end(process("driver"), "the training", "exited with 130");
  const auto saved = saved_step();
  for (const auto& each : nodes()) look_for_leaks(each);
  for (const auto& each : nodes()) process(each).signal(SIGTERM);
  for (const auto& each : nodes()) expect_end(process(each), each, "exited with 0");
  for (const auto& each : nodes()) start_node(each);
  start_training(true);
  const auto from = process("driver").line_with("continuing the run");
  if (!from.ends_with(" step " + std::to_string(saved)))
    count(counts_.lost_checkpoints,
          "expected the run to continue from step " + std::to_string(saved) + ":" + last_words(process("driver")));
  if (!comes_true([&] { return saved_step() > saved; }, time_to_go_on))
    count(counts_.lost_checkpoints,
          "the run does not go on from step " + std::to_string(saved) + ":" + last_words(process("driver")));
  process("driver").signal(SIGINT);
  expect_end(process("driver"), "the training that continued", "exited with 130");
}

}  // namespace troupe::bench
