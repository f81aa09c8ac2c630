// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::support {

/// Adds a name to a list of names for an error text: 'a', 'b'.
inline void add_quoted(std::string& names, std::string_view name) {
  names.append(names.empty() ? "'" : ", '").append(name).append("'");
}

/// "debug, info or warn"; empty if there are no words.
inline std::string joined_by_or(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list.append(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ").append(words[i]);
  return list;
}

}  // namespace troupe::support
