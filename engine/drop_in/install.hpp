// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// From this call on, every `backward()` and `grad()` of this process that goes through libtorch's C++ API runs on troupe's
/// engine; see docs/drop_in.md. A second call changes nothing. A pass that is running finishes on the engine on which it
/// began.
/// Neither function may be called while the first pass of the process begins on another thread: libtorch then starts the
/// threads of its engine, and does not lock the data that these functions read. Before that pass and after it, any thread may
/// call the functions. `libtroupe.so` has the same functions for C: `troupe_install_engine` and `troupe_uninstall_engine`.
void install_engine();

/// Gives the passes back to the engine that had them before. Does nothing if troupe's engine is not installed.
void uninstall_engine();

}  // namespace troupe
