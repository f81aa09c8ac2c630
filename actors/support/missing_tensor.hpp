// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <troupe/actors/support/counted.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::support {

/// The error for a tensor that is missing: tensor `index` was asked for, and `there` tensors are present. `expectation` is the
/// beginning of the text ("'forward' expected").
inline error missing_tensor(std::size_t index, std::size_t there, const std::string& expectation) {
  return {errc::misuse,
          expectation + " at least " + counted(index + 1, "tensor") + ", got " + (there == 0 ? "none" : std::to_string(there))};
}

}  // namespace troupe::support
