// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/seeds_test.cpp
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <caf/typed_response_promise.hpp>

#include <troupe/actors/membership/membership_state.hpp>

/// The nodes that this node was told to join at its start (ME-6). Parts of the membership actor, for any host.
namespace troupe::membership {

/// Dials the addresses until one of them is met, for `wait` at most; 0: for ever. Pre: the node listens.
template <class Self>
void join_seeds(Self self, const std::vector<std::string>& addresses, std::chrono::nanoseconds wait,
                caf::typed_response_promise<member> promise);

/// Dials the seeds that this node is not connected to. To be called for each interval.
template <class Self>
void dial_seeds(Self self);

}  // namespace troupe::membership
