// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/certs_test.cpp, tests/hosts/launching_test.cpp
#pragma once

#include <chrono>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::apps {

/// A kit that came by stdin and is in memory alone: no disk of this host ever has its private key.
class kit_from_stdin {
 public:
  /// Reads from `input` up to the end of the kit's second certificate, and not a byte more. Throws std::runtime_error if the input
  /// ends before, has more bytes than a kit, or `patience` is over.
  explicit kit_from_stdin(int input = 0, std::chrono::milliseconds patience = std::chrono::seconds(30));

  /// A path by which this process opens the kit, for as long as this object lives.
  std::string path() const;

 private:
  support::owned_descriptor memory_;
};

}  // namespace troupe::apps
