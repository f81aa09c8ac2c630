// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cli_test.cpp
#pragma once

namespace troupe {

/// The version of troupe, as in CMakeLists.txt.
inline constexpr const char* version = "0.1.0";

}  // namespace troupe
