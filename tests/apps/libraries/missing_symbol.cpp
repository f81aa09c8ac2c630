// SPDX-License-Identifier: BSD-3-Clause
// A library that calls a function that nobody defines.
void nobody_defines_this();

extern "C" const char* troupe_library(const char*, void*) {
  nobody_defines_this();
  return "";
}
