// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/hooks_in_passes_test.cpp
#pragma once

namespace troupe::engine {

/// Describes the work for which a thread runs its passes: for example, a call with its context. The layers above the engine
/// derive a class from this struct and set `current`. The engine only copies the pointer from thread to thread.
///   SR-1  a thread that continues the work of a waiting thread (on a fresh stack, or in libtorch) gets `current` of the
///         waiting thread. A worker that runs a function of a pass gets `current` of the pass's thread. So several threads may
///         use one object.
struct surroundings {
  static inline thread_local surroundings* current = nullptr;
};

}  // namespace troupe::engine
