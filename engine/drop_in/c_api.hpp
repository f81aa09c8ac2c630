// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/drop_in/shared_test.cpp
#pragma once

/// The C functions of `libtroupe.so`, for programs that load the library at run time (see install.hpp). Each function returns
/// 0, or -1 after an error.
extern "C" {
__attribute__((visibility("default"))) int troupe_install_engine();
__attribute__((visibility("default"))) int troupe_uninstall_engine();
}
