// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/plain_text.hpp>

namespace troupe::support {

/// A time in milliseconds for a text: "12.345 ms".
inline std::string duration_text(std::int64_t ns) { return fixed_text(static_cast<double>(ns) / 1e6, 3) + " ms"; }

}  // namespace troupe::support
