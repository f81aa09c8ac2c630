// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "actors/membership/simulated_cluster.hpp"

namespace troupe::bench {

using simulation::simulated_network;

/// Lets things go wrong in a simulated cluster, as drawn from a generator: processes end and are started again, nodes freeze, links
/// are cut in one or both directions, parted, slow, and connections break. Each fault ends by itself. Knows who was in trouble.
///   SF-1  last_trouble() of two nodes is now while something is wrong with one of them or between them.
class soak_faults {
 public:
  soak_faults(test::simulated_cluster& all, std::mt19937_64& random);

  /// Told before the process of a node ends.
  std::function<void(std::size_t node, bool says_farewell)> on_end;
  /// Told of each fault, for people.
  std::function<void(const std::string&)> on_fault;

  /// Draws one fault, which begins now. Nothing begins where the same thing is wrong already.
  void go_wrong();
  /// Ends all faults, and starts the nodes that have ended.
  void heal();

  /// When something was wrong last with one of the two nodes or between them.
  std::int64_t last_trouble(std::size_t a, std::size_t b) const;
  /// When something was wrong last with the node or between it and any other.
  std::int64_t last_trouble(std::size_t node) const;
  /// Whether the node was frozen since a time.
  bool was_frozen(std::size_t node, std::int64_t since_ns) const {
    return network_.is_frozen(node) || thawed_.at(node) >= since_ns;
  }
  bool is_slow(std::size_t a, std::size_t b) const { return slow_[a * count_ + b]; }
  std::uint64_t begun() const noexcept { return begun_; }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::int64_t draw_length_ns();
  void note(std::size_t a, std::size_t b);
  void note(std::size_t node);
  void note_parts();
  void end_later(const std::function<void()>& end);
  void begin(const std::string& what);
  void end_process(std::size_t node, bool says_farewell);
  void set_slow(std::size_t a, std::size_t b, std::int64_t factor);
  std::int64_t& stamp(std::size_t a, std::size_t b) { return stamps_[a * count_ + b]; }

  test::simulated_cluster& all_;
  simulated_network& network_;
  std::mt19937_64& random_;
  std::size_t count_;
  std::vector<std::int64_t> stamps_;  // when something went wrong or right between two nodes
  std::vector<bool> slow_;
  std::vector<std::int64_t> thawed_;
  std::uint64_t healed_ = 0;  // counts heal(): faults that began before end no more
  std::uint64_t begun_ = 0;
};

}  // namespace troupe::bench
