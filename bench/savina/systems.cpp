// SPDX-License-Identifier: BSD-3-Clause
#include "systems.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>

#include "../support/other_process.hpp"
#include "../support/scratch_folder.hpp"

namespace troupe::bench::savina {

namespace {

constexpr unsigned longest_measurement = 120;  // seconds

bool every_program(const program&, const values&) { return true; }
bool few_actors(const program& which, const values& of) { return which.actors(of) <= most_threads; }

/// What a measurement asks of its rounds, the first of which does not count.
std::vector<double> figures_of(int rounds, const values& of, const std::function<round()>& run) {
  std::vector<double> all;
  for (int i = -1; i < rounds; ++i) {
    const auto each = run();
    if (i < 0) continue;
    if (of.has("trips"))
      all.insert(all.end(), each.trips_us.begin(), each.trips_us.end());
    else
      all.push_back(each.seconds);
  }
  return all;
}

/// Runs in a process of its own, which ends if the measurement takes too long.
std::vector<double> in_limited_process(const std::function<std::vector<double>()>& measure) {
  return in_own_process([&] {
    ::alarm(longest_measurement);
    return measure();
  });
}

bool is_of_messages(const program& which, const values&) {
  const auto all = message_programs();
  return std::any_of(all.begin(), all.end(), [&](const program& each) { return each.name == which.name; });
}

runner_system caf_with(const std::string& name, caf::atom_value policy, spawn_mode how,
                       bool (*runs)(const program&, const values&)) {
  return {name, runs, [=](const program& which, const values& of, int rounds, std::size_t threads) {
            return in_limited_process([&] {
              caf::actor_system_config config;
              config.set("scheduler.policy", policy);
              config.set("scheduler.max-threads", threads);
              if (how == spawn_mode::brokers) config.load<caf::io::middleman>();
              caf::actor_system system(config);
              return figures_of(rounds, of, [&] { return which.on_caf(system, how, of); });
            });
          }};
}

/// The lines that a command prints. Throws std::runtime_error with them if it fails.
std::vector<std::string> lines_of(const std::string& command) {
  std::FILE* output = ::popen((command + " 2>&1").c_str(), "r");
  if (output == nullptr) throw std::runtime_error("can't run '" + command + "'");
  std::vector<std::string> lines;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), output) != nullptr) lines.emplace_back(line.data());
  if (::pclose(output) == 0) return lines;
  std::string text = "'" + command + "' failed:";
  for (const auto& each : lines) text += " " + each;
  throw std::runtime_error(text);
}

/// Runs a program by another language, which prints a line for each round: its seconds; and, if asked, one with "trip" and microseconds
/// for each message and its answer.
std::vector<double> by_command(const std::string& command, const program& which, const values& of, int rounds) {
  const auto lines = lines_of("timeout " + std::to_string(longest_measurement) + " " + command + " " + which.name + " " +
                              std::to_string(rounds) + " " + std::to_string(which.expected(of)) + of.arguments());
  std::vector<double> all;
  for (const auto& each : lines)
    if (const bool is_trip = each.starts_with("trip "); is_trip == of.has("trips"))
      all.push_back(std::stod(is_trip ? each.substr(5) : each));
  if (all.empty()) throw std::runtime_error("'" + command + "' printed no figure for " + which.name);
  return all;
}

bool is_there(const std::string& command) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): called before other threads begin
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

runner_system stealing() { return caf_with("work stealing", caf::atom("stealing"), spawn_mode::event_based, every_program); }
runner_system sharing() { return caf_with("work sharing", caf::atom("sharing"), spawn_mode::event_based, every_program); }
runner_system detached() { return caf_with("detached actors", caf::atom("sharing"), spawn_mode::detached, few_actors); }
runner_system brokers() { return caf_with("brokers", caf::atom("sharing"), spawn_mode::brokers, is_of_messages); }

runner_system of_a_node() {
  return {"settings of a node", every_program, [](const program& which, const values& of, int rounds, std::size_t threads) {
            return in_limited_process([&] {
              settings how;
              how.configure = [=](caf::actor_system_config& to) { to.set("scheduler.max-threads", threads); };
              nodes::system_config config(how);
              caf::actor_system system(config);
              return figures_of(rounds, of, [&] { return which.on_caf(system, spawn_mode::event_based, of); });
            });
          }};
}

runner_system plain_threads() {
  return {"threads with queues", few_actors, [](const program& which, const values& of, int rounds, std::size_t) {
            return in_limited_process([&] { return figures_of(rounds, of, [&] { return which.on_threads(of); }); });
          }};
}

runner_system erlang() {
  const auto compiled = std::make_shared<std::optional<scratch_folder>>();
  const bool is_here = is_there("command -v erl && command -v erlc");
  return {"Erlang/OTP", [=](const program&, const values&) { return is_here; },
          [=](const program& which, const values& of, int rounds, std::size_t threads) {
            if (!*compiled) {
              compiled->emplace();
              lines_of("erlc -o " + (*compiled)->path().string() + " " TROUPE_SAVINA_DIR "/erlang/savina.erl");
            }
            return by_command(
              "erl +S " + std::to_string(threads) + " -noshell -pa " + (*compiled)->path().string() + " -run savina main",
              which, of, rounds);
          }};
}

runner_system pykka() {
  const std::string python = TROUPE_SAVINA_DIR "/../../build/savina/bin/python";
  const bool is_here = is_there(python + " -c 'import pykka'");
  return {"Pykka",
          [=](const program& which, const values&) {
            constexpr std::array known{"ping_pong", "counting", "fork_join_throughput", "thread_ring"};
            return is_here && std::find(known.begin(), known.end(), which.name) != known.end();
          },
          [=](const program& which, const values& of, int rounds, std::size_t) {
            return by_command(python + " " TROUPE_SAVINA_DIR "/python/savina_pykka.py", which, of, rounds);
          }};
}

}  // namespace troupe::bench::savina
