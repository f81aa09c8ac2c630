// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/seeds_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <caf/error.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/membership/admission.hpp>
#include <troupe/actors/membership/member_desk.hpp>

namespace troupe::membership {

/// Joins the nodes that this node was told to join at its start (ME-6). A part of the membership actor.
class seeds {
 public:
  seeds(const membership_options& options, member_desk& members, admission& joins)
      : options_(options), members_(members), admission_(joins) {}

  /// Dials the addresses until this node has met a node at one of them, for `wait` at most; 0: for ever. Pre: the node listens.
  void join(const std::vector<std::string>& addresses, std::chrono::nanoseconds wait,
            caf::typed_response_promise<member> promise);
  /// Dials the seeds that this node is not connected to. To be called once in each interval of heartbeats.
  void dial();
  /// Says that the node stops. A start that is not over fails.
  void leave();

 private:
  struct seed {
    std::string host;
    std::uint16_t port = 0;
    std::uint64_t join = 0;  // number of the join that dials the address; 0: none
    member met = {};         // the node that has answered at the address last
    bool is_itself = false;
    bool has_refused = false;
    caf::error seen = {};      // the error of the last try
    std::int64_t dial_ns = 0;  // when a seed that has refused is dialled next

    bool is_tried() const noexcept { return is_itself || seen; }
  };

  std::optional<member> met_at(const seed& at, std::int64_t by_ns) const;
  std::string seen_at(const std::vector<seed>& seeds) const;
  template <class Result>
  void end_start(Result how);
  void fail_start();
  void look_at_start();
  void report(std::chrono::nanoseconds next);
  void dial(std::size_t which);
  void dial_ended(seed& of, const join_progress& how);

  const membership_options& options_;
  member_desk& members_;
  admission& admission_;
  std::vector<seed> all_;
  caf::typed_response_promise<member> starting_;  // the request that waits for a seed
  std::int64_t begun_ns_ = 0;
  std::int64_t until_ns_ = 0;
};

}  // namespace troupe::membership
