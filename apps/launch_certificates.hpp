// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/hosts/launching_test.cpp
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace troupe::certificates {
class authority;
}

namespace troupe::apps {

/// An authority and kits that exist as long as `troupe launch` runs: in a folder that only its user can read, and that is removed
/// with this object.
class launch_certificates {
 public:
  /// Throws troupe::error or std::system_error.
  launch_certificates();
  ~launch_certificates();
  launch_certificates(const launch_certificates&) = delete;
  launch_certificates& operator=(const launch_certificates&) = delete;

  /// A new kit for the node, as the text of its file.
  std::string kit_of(const std::string& node) const;
  /// The file of the kit for a node `driver`, with which programs of this user join the cluster.
  std::string drivers_kit() const;

 private:
  std::filesystem::path folder_;
  std::unique_ptr<const certificates::authority> authority_;
};

}  // namespace troupe::apps
