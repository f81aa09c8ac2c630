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

/// A kit that was read from stdin: a node's certificate, the authority's certificate, and the node's private key. The kit is
/// only in memory, so the key is never on a disk of this host.
class kit_from_stdin {
 public:
  /// Reads a kit from the descriptor `input`, up to the end of its second certificate and not a byte more. Throws
  /// std::runtime_error if the input ends early, is longer than a kit, or does not bring the kit within `patience`.
  explicit kit_from_stdin(int input = 0, std::chrono::milliseconds patience = std::chrono::seconds(30));

  /// The path under which this process can open the kit while this object lives.
  std::string path() const { return "/proc/self/fd/" + std::to_string(memory_.get()); }

 private:
  support::owned_descriptor memory_;
};

/// The authority and the kits that `troupe launch` makes for its nodes. They are only in memory. When the process ends, however
/// it ends, nothing of them is left.
class launch_certificates {
 public:
  /// Makes the authority and the kit of node `driver`. Throws troupe::error or std::system_error.
  launch_certificates();
  ~launch_certificates();

  /// Makes a new kit for the node. Returns the text of the kit's file.
  std::string kit_of(const std::string& node) const;
  /// The path of the kit of a node named `driver`. With this kit, programs of this user can join the cluster while this process
  /// runs.
  std::string drivers_kit() const;

 private:
  std::unique_ptr<const certificates::authority> authority_;
  support::owned_descriptor drivers_kit_;
};

}  // namespace troupe::apps
