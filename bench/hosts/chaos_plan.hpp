// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace troupe::bench {

/// Something bad that happens to a process, a host or a link, and then ends.
struct chaos_event {
  enum class kind { kill, freeze, unplug, cut };

  kind what = kind::kill;
  std::string who;    // the host
  std::string other;  // the other host of a cut link
  std::chrono::milliseconds begin{0};
  std::chrono::milliseconds end{0};

  /// "cut h1 from h2 for 1.2 s".
  std::string text() const;
};

/// Draws events. One seed gives one sequence of rounds.
class chaos_plan {
 public:
  /// `hosts`: each has one process, and each has a link to each other host.
  chaos_plan(std::uint64_t seed, std::vector<std::string> hosts) : random_(seed), hosts_(std::move(hosts)) {}

  /// One to four events that may overlap, in the order in which they begin. No process and no link has two events at a time.
  /// Times count from the begin of the round.
  std::vector<chaos_event> round();

 private:
  chaos_event draw();
  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  std::mt19937_64 random_;
  std::vector<std::string> hosts_;
};

}  // namespace troupe::bench
