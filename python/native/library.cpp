// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/engine_test.py
#include "c_api.hpp"

/// The minor version of torch that the library was built for, such as "2.11".
TORCHTROUPE_EXPORT const char* torchtroupe_torch_minor() { return TORCHTROUPE_TORCH_MINOR; }
