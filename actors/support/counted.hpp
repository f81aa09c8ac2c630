// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

namespace troupe::support {

/// A number with its noun for an error text: "no tensors", "1 tensor", "2 tensors".
inline std::string counted(std::size_t number, const std::string& noun) {
  if (number == 1) return "1 " + noun;
  return (number == 0 ? "no" : std::to_string(number)) + " " + noun + "s";
}

}  // namespace troupe::support
