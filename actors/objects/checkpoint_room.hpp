// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <troupe/actors/support/open_folder.hpp>

namespace troupe::objects {

/// Throws troupe::error (function_failed) with the folder, the reason and what to do, unless files of `bytes` in all can be
/// written to `folder`.
///   XR-1  nothing is left on the disk: if there is no such folder, the folder in which it would be made is checked.
void expect_room(const std::string& folder, std::uint64_t bytes);
/// As above, for a folder that another node names. `there`: the folder, or the last one on the way to it that is there.
void expect_room(const std::string& folder, const support::open_folder& there, std::uint64_t bytes);

}  // namespace troupe::objects
