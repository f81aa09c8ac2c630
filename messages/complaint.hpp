// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// What is wrong with a header that was read, as text; null if nothing is wrong.
using complaint = const char*;

}  // namespace troupe
