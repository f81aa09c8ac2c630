// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/savina/programs_test.cpp
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "caf_world.hpp"
#include "losing_world.hpp"
#include "outcome.hpp"
#include "parameters.hpp"
#include "thread_world.hpp"

namespace troupe::bench::savina {

/// A round of a program.
struct round {
  double seconds = 0;
  std::vector<double> trips_us{};
};

/// A program of the suite.
struct program {
  std::string name;
  std::string text;     // what the actors do, in one plain sentence
  std::string counted;  // "meetings": what its throughput counts
  std::int64_t (*count)(const values&);
  std::int64_t (*actors)(const values&);
  std::int64_t (*expected)(const values&);
  /// Run a round. Throw std::runtime_error with what was expected and what came if the result is wrong or does not come.
  round (*on_caf)(caf::actor_system&, spawn_mode, const values&);
  round (*on_threads)(const values&);
  /// Runs on one thread, where the message of number `lost` gets lost. 0: none.
  round (*losing)(const values&, std::size_t lost);
};

/// More threads than this are not made: a program with more actors runs on schedulers alone.
inline constexpr std::int64_t most_threads = 128;

/// Messages of several programs.
struct begin {
  friend auto inspect(auto& by, begin&) { return by(); }
};
struct stop {
  friend auto inspect(auto& by, stop&) { return by(); }
};
template <class Ref>
struct introduce {
  std::vector<Ref> all;
  friend auto inspect(auto& by, introduce& x) { return by(x.all); }
};

/// Runs a program in a world, and compares the result with `expected`.
template <class Program, class World>
round round_in(World& world, const values& of) {
  const auto start = std::chrono::steady_clock::now();
  auto came = Program::run(world, of);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (const auto expected = Program::expected(of); expected != came.value)
    throw std::runtime_error("expected the result " + std::to_string(expected) + ", got " + std::to_string(came.value));
  return {took.count(), std::move(came.trips_us)};
}

template <class Program>
program program_of(const std::string& name, const std::string& text, const std::string& counted) {
  return {name,
          text,
          counted,
          Program::count,
          Program::actors,
          Program::expected,
          [](caf::actor_system& in, spawn_mode how, const values& of) {
            caf_world<Program> world(in, how);
            return round_in<Program>(world, of);
          },
          [](const values& of) {
            thread_world<Program> world;
            return round_in<Program>(world, of);
          },
          [](const values& of, std::size_t lost) {
            losing_world<Program> world(lost);
            return round_in<Program>(world, of);
          }};
}

/// The programs by what they are about: messages, actors that share something, and computing.
std::vector<program> message_programs();
std::vector<program> sharing_programs();
std::vector<program> computing_programs();
/// All of them.
std::vector<program> all_programs();

}  // namespace troupe::bench::savina
