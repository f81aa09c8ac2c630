// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Marks a function that Python calls by its C name (`ctypes`). Such a name begins with `torchtroupe_`.
#define TORCHTROUPE_EXPORT extern "C" __attribute__((visibility("default")))
