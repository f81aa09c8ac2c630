// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/devices/cuda/block_codec.hpp>
#include <troupe/devices/cuda/packing.hpp>

/// The interface of the library of kernels (libtroupe_cuda.so): a table of C functions. So the library uses no symbol of the
/// program, and the program uses no symbol of the library but one.
namespace troupe::devices::cuda {

/// Raised with each change of the table, of a struct in its arguments, or of the work of a function.
inline constexpr std::uint32_t functions_version = 2;

/// Each function queues one kernel on `stream` (a cudaStream_t; null is the default stream) and returns. The current device is
/// that of the stream. Elements and buffers are in the memory of the GPU. The result is 0, or the cudaError_t of the launch.
struct functions {
  std::uint32_t version;  // first, and checked before the rest is read
  int (*pack)(const packing_table* table, unsigned char* buffer, void* stream);
  int (*unpack)(const packing_table* table, const unsigned char* buffer, void* stream);
  int (*to_bfloat16)(const float* from, std::uint16_t* to, std::uint64_t count, void* stream);
  int (*from_bfloat16)(const std::uint16_t* from, float* to, std::uint64_t count, void* stream);
  int (*to_float16)(const float* from, std::uint16_t* to, std::uint64_t count, void* stream);
  int (*from_float16)(const std::uint16_t* from, float* to, std::uint64_t count, void* stream);
  int (*encode_blocks)(const encoding* what, void* stream);
  int (*decode_blocks)(const decoding* what, void* stream);
  /// The text for a result. Never null.
  const char* (*reason)(int result);
};

/// The one symbol of the library: a function of this type.
using functions_getter = const functions* (*)();
inline constexpr const char* functions_symbol = "troupe_cuda_functions";

}  // namespace troupe::devices::cuda
