// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/engine_test.py
#pragma once

namespace torchtroupe {

/// After reuse_memory(true), libtorch allocates tensors of the CPU of at most 64 KiB out of blocks that the same thread has
/// freed. This saves about 5 % of a training step of small functions: the system's allocator searches each time for memory with
/// libtorch's alignment. With another malloc than glibc's, fewer blocks fit again.
///   MB-1  each thread keeps at most 8 MiB of free blocks, and none when it has ended. A block that would exceed this replaces
///         all others.
///   MB-2  a tensor may be freed by any thread, and after reuse_memory(false).
///   MB-3  an allocator that a program has set with libtorch's SetCPUAllocator() stays: reuse_memory() then changes nothing.
///   MB-4  libtorch's profiler is told of each allocation, as by libtorch's allocator.
void reuse_memory(bool on);

}  // namespace torchtroupe
