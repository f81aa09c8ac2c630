// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/peer_rights_test.cpp
#pragma once

#include <string>

#include <troupe/messages/errors.hpp>

namespace troupe::support {

/// Thrown by what runs a call, if the caller asks for what this node does not allow. The worker that runs the call adds who
/// called, logs and counts the refusal.
class refused_request : public error {
 public:
  explicit refused_request(const std::string& why) : error(errc::refused, why) {}
};

}  // namespace troupe::support
