// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/hosts/launching_test.cpp
#pragma once

#include <memory>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::certificates {
class authority;
}

namespace troupe::apps {

/// An authority and kits that exist as long as `troupe launch` runs: they are in memory alone, so nothing is left of them however
/// the process ends.
class launch_certificates {
 public:
  /// Throws troupe::error or std::system_error.
  launch_certificates();
  ~launch_certificates();
  launch_certificates(const launch_certificates&) = delete;
  launch_certificates& operator=(const launch_certificates&) = delete;

  /// A new kit for the node, as the text of its file.
  std::string kit_of(const std::string& node) const;
  /// The path of the kit for a node `driver`, with which programs of this user join the cluster while this process runs.
  std::string drivers_kit() const;

 private:
  std::unique_ptr<const certificates::authority> authority_;
  support::owned_descriptor drivers_kit_;
};

}  // namespace troupe::apps
