// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::bench {

/// Leaves the rows that `only` names, in their order; all rows if `only` is empty. Throws std::runtime_error with the names of all
/// rows if there is no row of a name.
template <class Row>
void keep_only(std::vector<Row>& rows, const std::vector<std::string>& only) {
  for (const auto& name : only)
    if (std::none_of(rows.begin(), rows.end(), [&](const Row& each) { return each.name == name; })) {
      std::string known;
      for (const auto& each : rows) known += ' ' + each.name;
      throw std::runtime_error("there is no row '" + name + "'; there are" + known);
    }
  if (!only.empty())
    std::erase_if(rows, [&](const Row& each) { return std::find(only.begin(), only.end(), each.name) == only.end(); });
}

}  // namespace troupe::bench
