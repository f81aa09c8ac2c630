// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>

extern "C" int calls_abs(int value) { return abs(value); }
