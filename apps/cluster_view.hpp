// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <troupe/actors/status_client.hpp>

#include "apps/status_rates.hpp"

namespace troupe::apps {

/// The nodes of a cluster, as a person or a program wants to see them.
///   CV-1  a node is listed once: a node that is gone is left out if a node of its name or address is up or unreachable, or is gone
///         since a later time.
///   CV-2  a node that is up and did not answer is listed with the reason, and so is a node that is not up.
class cluster_view {
 public:
  struct row {
    member who;
    std::string state;      // "up", "unreachable" or "gone"
    double for_s = 0;       // how long the node has been in this state
    std::string transport;  // how the asked node reaches this one; of the asked node itself empty
    std::string problem;    // why the node is not up or did not answer
    std::optional<node_status> status;
    std::optional<status_rates> rates;
  };

  /// `before`: an earlier answer of the same node, for the rates.
  explicit cluster_view(cluster_status now, const cluster_status* before = nullptr);

  /// The node that was asked is the first one. The others are sorted by state, then by name.
  const std::vector<row>& rows() const noexcept { return rows_; }

  /// Lines of at most 160 characters for usual names and figures.
  std::string table() const;
  nlohmann::ordered_json json() const;

 private:
  std::vector<row> rows_;
};

}  // namespace troupe::apps
