// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The functions of `libtroupe.so` by their C names, for programs that load it at run time. See install.hpp. 0, or -1 where it
/// failed.
extern "C" {
__attribute__((visibility("default"))) int troupe_install_engine();
__attribute__((visibility("default"))) int troupe_uninstall_engine();
}
