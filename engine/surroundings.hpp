// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/hooks_in_passes_test.cpp
#pragma once

namespace troupe::engine {

/// The work for which a thread runs its passes: for example, a call and its context. The layers above the engine derive a class
/// from this struct, and set `current`.
///   SR-1  a thread that goes on with the work of a waiting thread (a fresh stack, a thread of libtorch) has the surroundings
///         of the waiting thread. A worker that runs a function of a pass has the surroundings of the pass's thread. So several
///         threads may have one object.
struct surroundings {
  static inline thread_local surroundings* current = nullptr;
};

}  // namespace troupe::engine
