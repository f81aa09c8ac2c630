// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/hosts/testbed.hpp"

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

/// What went wrong. All of it should be 0.
struct chaos_counts {
  int hangs = 0;             // processes that did not end, and runs that did not go on, though everything was well again
  int leaks = 0;             // contexts, calls, objects, descriptors, threads or memory that stayed
  int lost_checkpoints = 0;  // runs that did not go on from their last checkpoint
  int not_back = 0;          // nodes that the others did not meet again
  int ended_runs = 0;        // trainings that ended though they may retry

  int sum() const noexcept { return hangs + leaks + lost_checkpoints + not_back + ended_runs; }
};

/// Four hosts: stage1, stage2 and a third node on hosts of their own, and a training on the host `driver`. The hosts are
/// named as their nodes.
class chaos_world {
 public:
  /// Starts everything, and waits for the first checkpoint. Throws std::runtime_error if none is written.
  chaos_world();
  ~chaos_world();

  static std::vector<std::string> hosts() { return {"driver", "stage1", "stage2", "third"}; }

  /// The event begins, or ends.
  void act(const chaos_event& event, bool begins);

  /// Once all events have ended: everything has to come back, and the training has to go on from its last checkpoint.
  void expect_recovery();
  /// Stops the training, looks for what is left, stops the nodes, and trains on with new nodes from the last checkpoint.
  void finish();

  const chaos_counts& counts() const noexcept { return counts_; }

 private:
  void start_node(const std::string& name);
  void start_training(bool resume);
  void keep_training();
  void kill(const std::string& host);
  std::vector<std::string> strangers_of(const std::string& name) const;
  void expect_end(hosts::program& of, const std::string& name, const std::string& how);
  void look_for_leaks(const std::string& name);
  void count(int& what, const std::string& text);
  void show_nodes() const;
  hosts::program& process(const std::string& host) { return *processes_.at(host); }

  std::int64_t saved_step() const;

  hosts::testbed all_;
  std::map<std::string, std::unique_ptr<hosts::program>> processes_;  // by host
  std::map<std::string, std::map<std::string, double>> first_figures_;
  std::int64_t last_saved_ = 0;
  bool training_may_fail_ = false;  // whether it was started a moment ago
  chaos_counts counts_;
};

}  // namespace troupe::bench
