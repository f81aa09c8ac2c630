// SPDX-License-Identifier: BSD-3-Clause
// A library that exports no function for troupe.
extern "C" int something_else() { return 1; }
