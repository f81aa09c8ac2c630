// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/engine_test.py
#pragma once

namespace torchtroupe {

/// From the call reuse_memory(true) on, libtorch allocates tensors of the CPU of at most 64 KiB out of blocks that the same thread
/// has freed. The system's allocator looks for memory with libtorch's alignment anew each time: 5 % of a training step of small
/// functions. Any thread may call the function.
///   SM-1  each thread keeps at most 8 MiB of free blocks, and none when it has ended.
///   SM-2  a tensor may be freed by any thread, and after reuse_memory(false).
///   SM-3  an allocator that a program has set with libtorch's SetCPUAllocator() stays: then the call does nothing.
///   SM-4  libtorch's profiler is told of each allocation, as by libtorch's allocator.
void reuse_memory(bool on);

}  // namespace torchtroupe
