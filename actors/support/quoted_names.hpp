// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace troupe::support {

/// Adds a name to a list of names for an error text: 'a', 'b'.
inline void add_quoted(std::string& names, std::string_view name) {
  names.append(names.empty() ? "'" : ", '").append(name).append("'");
}

}  // namespace troupe::support
