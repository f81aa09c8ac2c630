// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

/// What libtroupe_cuda.so does with CUDA's IPC handles (functions.hpp). A result is 0 or a cudaError_t.
namespace troupe::devices::cuda {

inline constexpr int handle_bytes = 64;

/// An allocation of a GPU, for another process.
struct memory_handle {
  unsigned char gpu[16];  // CUDA's number of the GPU, which is the same in all processes
  unsigned char handle[handle_bytes];
  std::uint64_t bytes;
};

struct sharing_functions {
  /// Sets `to` to the allocation that holds `address`, and `offset` to the place of the address in it.
  int (*share_memory)(const void* address, memory_handle* to, std::uint64_t* offset);
  /// Sets `index` to the device of this process that is the GPU; -1 if there is none.
  int (*find_gpu)(const unsigned char* gpu, int* index);
  /// Sets `base` to where the allocation begins in this process, and `bytes` to its size.
  int (*open_memory)(int index, const memory_handle* of, void** base, std::uint64_t* bytes);
  int (*close_memory)(int index, void* base);
  /// Makes an event on the device, and its handle.
  int (*make_event)(int index, void** event, unsigned char* handle);
  int (*open_event)(int index, const unsigned char* handle, void** event);
  /// `index`: the device of the stream.
  int (*record_event)(int index, void* event, void* stream);
  int (*wait_for_event)(int index, void* event, void* stream);
  int (*destroy_event)(void* event);
};

/// The table of libtroupe_cuda.so, for functions.hpp. Programs do not link it.
const sharing_functions& sharing_table();

}  // namespace troupe::devices::cuda
