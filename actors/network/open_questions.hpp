// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_rules_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_set>
#include <utility>

namespace troupe::network {

/// The questions that actors of this process have sent to one node of CAF, and that are not answered yet. CAF takes an answer from
/// any node that sends the number of a question, and numbers can be guessed. Used by the leader thread only.
///   OQ-1  a question is answered once, by the node that was asked.
///   OQ-2  at most twice `most` questions are remembered. Beyond that the oldest are forgotten, and nobody can answer them any more.
class open_questions {
 public:
  static constexpr std::size_t most = std::size_t{1} << 18;

  /// `actor`: the actor that asks. `number`: CAF's number of the question, which counts up for each actor.
  void add(std::uint64_t actor, std::uint64_t number) {
    if (recent_.size() == most) older_ = std::exchange(recent_, {});
    recent_.insert({actor, number});
  }
  /// Takes the question out. False: the node was not asked, or has answered.
  bool take(std::uint64_t actor, std::uint64_t number) {
    return recent_.erase({actor, number}) > 0 || older_.erase({actor, number}) > 0;
  }

  bool empty() const noexcept { return recent_.empty() && older_.empty(); }

 private:
  struct question {
    std::uint64_t actor;
    std::uint64_t number;
    bool operator==(const question&) const = default;
  };
  struct hash {
    std::size_t operator()(const question& of) const noexcept {
      constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // spreads numbers that follow each other
      return std::hash<std::uint64_t>()((of.actor * odd) ^ of.number);
    }
  };
  using questions = std::unordered_set<question, hash>;

  questions recent_;
  questions older_;
};

}  // namespace troupe::network
