// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/peer_directory_test.cpp, tests/apps/cluster_view_test.cpp
#pragma once

namespace troupe {

/// peer_status::transport of a member that the node can't connect to, and was never connected to. Other nodes may reach it.
inline constexpr const char* not_reached = "not reached from here";

}  // namespace troupe
