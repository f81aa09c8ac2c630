// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::logging {

/// The text as a part of one line, of at most `most` bytes and a note of how much is missing.
///   LX-1  the result has no control character, no line break of Unicode, no mark that changes the direction of writing, and no bytes
///         that are not UTF-8: \n, \r, \t, \x1b and \u{202e} stand for them.
std::string one_line(std::string_view text, std::size_t most);

}  // namespace troupe::logging
