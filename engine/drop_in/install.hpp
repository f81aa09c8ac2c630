// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// From this call on, every `backward()` and `grad()` of this process that goes through libtorch's C++ API runs on troupe's
/// engine; see docs/drop_in.md. A second call changes nothing. A pass that is running finishes on the engine on which it began.
/// Do not call install_engine() or uninstall_engine() while the first pass of the process begins on another thread. At that
/// time libtorch starts the threads of its engine, and writes data that both functions read without a lock. Before and after
/// that time, any thread may call the functions. `libtroupe.so` has the same functions for C: `troupe_install_engine` and
/// `troupe_uninstall_engine`.
void install_engine();

/// Makes later passes run on the engine that was libtorch's default engine before install_engine(). Does nothing if troupe's
/// engine is not installed.
void uninstall_engine();

}  // namespace troupe
