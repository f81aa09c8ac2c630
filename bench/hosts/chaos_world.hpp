// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chaos_plan.hpp"
#include "tests/hosts/testbed.hpp"

namespace troupe::bench {

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

  void begin(const chaos_event& event);
  void end(const chaos_event& event);

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
