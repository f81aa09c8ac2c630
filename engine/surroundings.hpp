// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/hooks_in_passes_test.cpp
#pragma once

namespace troupe::engine {

/// What a thread works for, beyond its passes. The layers above the engine derive from it and set it.
///   SR-1  a thread that goes on with the work of a thread that waits has the surroundings of that thread: a fresh stack, a thread of libtorch.
///         A worker that runs a function of a pass has those of the thread of the pass. Several threads may so have one object.
struct surroundings {
  static inline thread_local surroundings* current = nullptr;
};

}  // namespace troupe::engine
