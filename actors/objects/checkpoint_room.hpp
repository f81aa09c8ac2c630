// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace troupe::objects {

/// Throws troupe::error (function_failed) with the folder, the reason and what to do, unless files of `bytes` in all can be
/// written to `folder`.
///   XR-1  nothing is left on the disk: if there is no such folder, the folder in which it would be made is checked.
void expect_room(const std::string& folder, std::uint64_t bytes);

}  // namespace troupe::objects
