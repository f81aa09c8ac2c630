// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe {

/// From now on every `backward()` and `grad()` of this process that goes through libtorch's C++ API runs on troupe's engine;
/// see docs/drop_in.md. Installing twice is installing once. Passes that are running finish on the engine they began on.
/// Neither function may be called while the first pass of the process begins on another thread: libtorch then starts the threads
/// of its engine and guards nothing of what these functions read of it. Before that pass and after it, any thread may call them.
/// `libtroupe.so` has the same as the C functions `troupe_install_engine` and `troupe_uninstall_engine`.
void install_engine();

/// Gives the passes back to the engine that had them before. Does nothing where troupe's is not installed.
void uninstall_engine();

}  // namespace troupe
