// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for CUDA's driver that reports three GPUs. Two variants lack a function.
extern "C" {

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }

#ifdef NEEDS_MISSING_FUNCTION
int troupe_no_such_function();
int use_missing_function() { return troupe_no_such_function(); }
#endif

#ifndef WITHOUT_COUNT
int cuDeviceGetCount(int* count) {
  *count = 3;
  return 0;
}
#endif
}
