// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cluster_view_test.cpp, tests/apps/status_command_test.cpp
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/messages.hpp>

#include "apps/charlm/figures.hpp"
#include "apps/ready_line.hpp"

namespace troupe::apps {

/// "24,512".
inline std::string number(std::uint64_t value) { return charlm::grouped(std::to_string(value)); }

/// "127.0.0.1:4001".
inline std::string address_of(const member& who) { return ready_line{who.name, who.host, who.port}.address(); }

inline std::string state_of(const peer_status& x) {
  if (!x.up && x.transport == not_reached) return not_reached;
  return x.up ? "up" : x.gone ? "gone" : "unreachable";
}

/// A text, or "-" in the place of an empty one.
inline std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace troupe::apps
