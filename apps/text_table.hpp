// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::apps {

/// Returns the rows as lines of text. The first `left` columns are aligned to the left, the others to the right. All rows have
/// the same number of cells. No line ends with a space.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

}  // namespace troupe::apps
