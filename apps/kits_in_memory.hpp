// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/certs_test.cpp, tests/hosts/launching_test.cpp
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::certificates {
class authority;
}

namespace troupe::apps {

/// A kit (a node's certificate, the authority's, and the node's private key) that came by stdin and is in memory alone: no disk
/// of this host ever has the key.
class kit_from_stdin {
 public:
  /// Reads from `input` up to the end of the kit's second certificate, and not a byte more. Throws std::runtime_error if the
  /// input ends before, has more bytes than a kit, or `patience` is over.
  explicit kit_from_stdin(int input = 0, std::chrono::milliseconds patience = std::chrono::seconds(30));

  /// A path by which this process opens the kit, for as long as this object lives.
  std::string path() const { return "/proc/self/fd/" + std::to_string(memory_.get()); }

 private:
  support::owned_descriptor memory_;
};

/// An authority and kits that exist as long as `troupe launch` runs: they are in memory alone, so nothing is left of them
/// however the process ends.
class launch_certificates {
 public:
  /// Throws troupe::error or std::system_error.
  launch_certificates();
  ~launch_certificates();

  /// A new kit for the node, as the text of its file.
  std::string kit_of(const std::string& node) const;
  /// The path of the kit for a node `driver`, with which programs of this user join the cluster while this process runs.
  std::string drivers_kit() const;

 private:
  std::unique_ptr<const certificates::authority> authority_;
  support::owned_descriptor drivers_kit_;
};

}  // namespace troupe::apps
