// SPDX-License-Identifier: BSD-3-Clause
// A library that was built with an older troupe.
#include <cstdlib>

extern "C" const char* troupe_library(const char*, void*) {
  return "troupe 0.0.9 with headers 000000000000, libtorch 2.10.0, CAF 0.17.6";
}
