// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/devices/cuda/block_codec.hpp>
#include <troupe/devices/cuda/packing.hpp>
#include <troupe/devices/cuda/sharing.hpp>

/// The interface of libtroupe_cuda.so, the library of kernels: a table of C functions. The program looks up one symbol in the
/// library, a function that returns the table. The library uses no symbol of the program.
namespace troupe::devices::cuda {

/// The version of the table. Raise it with each change of the table, of a struct in its arguments, or of what a function does.
inline constexpr std::uint32_t functions_version = 3;

/// Each function queues one kernel on `stream` (a cudaStream_t; null is the default stream) and returns. The caller makes the
/// device of the stream the current device. Elements and buffers are in the memory of the GPU. The result is 0, or the
/// cudaError_t of the launch.
struct functions {
  std::uint32_t version;  // the first member, because it is checked before the others are read
  int (*pack)(const packing_table* table, unsigned char* buffer, void* stream);
  int (*unpack)(const packing_table* table, const unsigned char* buffer, void* stream);
  int (*to_bfloat16)(const float* from, std::uint16_t* to, std::uint64_t count, void* stream);
  int (*from_bfloat16)(const std::uint16_t* from, float* to, std::uint64_t count, void* stream);
  int (*to_float16)(const float* from, std::uint16_t* to, std::uint64_t count, void* stream);
  int (*from_float16)(const std::uint16_t* from, float* to, std::uint64_t count, void* stream);
  int (*encode_blocks)(const encoding* what, void* stream);
  int (*decode_blocks)(const decoding* what, void* stream);
  /// Returns the text for a result, never null.
  const char* (*reason)(int result);
  /// These functions queue no kernel.
  sharing_functions sharing;
};

/// The type and the name of the one symbol that the library exports: a function that returns the table.
using functions_getter = const functions* (*)();
inline constexpr const char* functions_symbol = "troupe_cuda_functions";

}  // namespace troupe::devices::cuda
