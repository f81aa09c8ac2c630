// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::logging {

/// The text as a part of one line. The result is cut after `most` bytes; a note then says how many bytes of the text are
/// missing.
///   LX-1  the result has no control character, no Unicode line break, no mark that changes the direction of writing, and only
///         valid UTF-8. Other characters and bytes are escaped: \n, \r, \t, \x1b, \u{202e}.
std::string one_line(std::string_view text, std::size_t most);

/// The text, which has to be one line (see one_line), as a string of JSON with its quotes.
std::string json_string(std::string_view line);

}  // namespace troupe::logging
