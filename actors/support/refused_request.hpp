// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/peer_rights_test.cpp
#pragma once

#include <string>

#include <troupe/messages/errors.hpp>

namespace troupe::support {

/// Thrown while a call runs, if the caller asks for something that this node does not allow. The worker of the call adds the
/// name of the caller to the text, and logs and counts the refusal.
class refused_request : public error {
 public:
  explicit refused_request(const std::string& why) : error(errc::refused, why) {}
};

}  // namespace troupe::support
