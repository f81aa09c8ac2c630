// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/engine_test.py
#pragma once

#include <cstdint>

namespace torchtroupe {

/// From this call on, the backward passes of Python run on troupe's engine, and those that C++ code starts in this process:
/// PyTorch's Python engine calls troupe's in the place of libtorch's. `compiled`: compiled autograd is on at the moment.
///   PE-1  a second call only takes a call back that the loader has led to libtorch again. A pass that is running finishes on
///         the engine on which it began.
///   PE-2  throws std::runtime_error, and changes nothing, if another library has taken the passes before.
void take_python_passes(bool compiled);

/// Gives the passes back to libtorch's engine. Does nothing if they are there.
void return_python_passes();

/// The time that passes of troupe's engine took so far, nested passes counted with the outer ones.
std::uint64_t nanoseconds_in_passes() noexcept;

}  // namespace torchtroupe
