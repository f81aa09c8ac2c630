// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/bench_command_test.cpp
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>

namespace troupe::apps::probe {

/// Programs of the Savina suite (AGERE! 2014) as calls between nodes:
///   "ping_pong"    the node calls one other node after the other
///   "thread_ring"  a token goes around all nodes: each one calls the next one, and answers when its call is answered
///   "big"          each node calls random others, all at once
///   "chameneos"    creatures on all nodes meet in pairs; the node calls both of a pair, and has many pairs under way
inline constexpr std::array savina_programs{"ping_pong", "thread_ring", "big", "chameneos"};

/// The methods of a probe that run these programs:
///   "savina"         runs `program` with the nodes `peers` for about `seconds`; returns `count` calls and their `seconds`.
///                    Throws troupe::error if a result is wrong
///   "savina_ring"    makes a probe on the first of `ring`, which does so with the rest
///   "savina_token"   sends the token on; returns how many nodes it has passed
///   "savina_ask"     calls probes on random nodes out of `peers`, always the same nodes; returns as `count` how many answered
///   "savina_meet"    the colour of a creature that meets one of colour `other`; a creature begins with `colour`
///   "savina_met"     how many creatures it has met
class savina_actor {
 public:
  call_reply call(const std::string& method, call_arguments& arguments);

 private:
  std::int64_t ask(node& here, const std::vector<std::string>& peers, std::int64_t seed);
  std::int64_t meet(std::int64_t colour, std::int64_t other);

  std::optional<remote_module> next_;  // of a ring
  std::vector<remote_module> asked_;
  std::optional<std::int64_t> colour_;
  std::int64_t met_ = 0;
};

}  // namespace troupe::apps::probe
