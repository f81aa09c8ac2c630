// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <troupe/messages/messages.hpp>

namespace troupe::apps {

/// What a node does in a second, from what it said at two times.
///   RA-1  no rate is negative. (Sums over peers fall when the node forgets a peer that went down long ago.)
struct status_rates {
  double calls_run = 0;
  double functions_run = 0;
  double bytes_sent = 0;      // of tensors, to all peers
  double bytes_received = 0;  // of tensors, from all peers, and what the node has read out of their memory

  /// Empty if the node was restarted, or if both were said at the same time.
  static std::optional<status_rates> between(const node_status& before, const node_status& after);
};

/// "1.2 MB": a count of bytes in the largest unit of 1000 that it fills; "512 B".
std::string bytes_text(double bytes);

}  // namespace troupe::apps
