// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/cuda/block_codec_test.cpp, tests/messages/element_formats_test.cpp
#pragma once

#include <cstdint>

/// Stands before a function that both a GPU and the host run. nvcc compiles such a function twice; other compilers see a plain
/// function.
#ifdef __CUDACC__
#define TROUPE_HOST_DEVICE __host__ __device__
#else
#define TROUPE_HOST_DEVICE
#endif

/// Arithmetic on float32 whose results have the same bits on a GPU and on the host.
///   FB-1  each operation is rounded once, to nearest even. No compiler joins a product and a sum to one operation (fma): on a
///         GPU intrinsic functions prevent it, on the host the option -ffp-contract=off (messages/CMakeLists.txt).
///   FB-2  denormal numbers keep their values, unless a thread of the host flushes them to zero.
/// The bits of a NaN that an operation makes may differ between a GPU and the host. So no result takes its bits from such a
/// NaN.
namespace troupe::element_formats {

inline constexpr std::uint32_t sign_bit = 0x80000000;
inline constexpr std::uint32_t infinity_bits = 0x7f800000;  // the bits of a NaN without its sign are greater than these
inline constexpr std::uint32_t nan_bits = 0x7fc00000;

// These functions do not use std::bit_cast, which runs on the host only.
TROUPE_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}
TROUPE_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float value = 0;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Returns the bits of the magnitude. The order of magnitudes is the order of these bits: infinity comes after all numbers, NaN
/// after infinity.
TROUPE_HOST_DEVICE inline std::uint32_t magnitude_bits(float value) { return bits_of(value) & ~sign_bit; }

#ifdef __CUDA_ARCH__
TROUPE_HOST_DEVICE inline float sum(float left, float right) { return __fadd_rn(left, right); }
TROUPE_HOST_DEVICE inline float difference(float left, float right) { return __fsub_rn(left, right); }
TROUPE_HOST_DEVICE inline float product(float left, float right) { return __fmul_rn(left, right); }
TROUPE_HOST_DEVICE inline float quotient(float left, float right) { return __fdiv_rn(left, right); }
#else
TROUPE_HOST_DEVICE inline float sum(float left, float right) { return left + right; }
TROUPE_HOST_DEVICE inline float difference(float left, float right) { return left - right; }
TROUPE_HOST_DEVICE inline float product(float left, float right) { return left * right; }
TROUPE_HOST_DEVICE inline float quotient(float left, float right) { return left / right; }
#endif

/// Returns the nearest whole number; of two that are equally near, the even number. The magnitude of the value is at most 2^22.
TROUPE_HOST_DEVICE inline float nearest_whole(float value) {
  constexpr float shift = 12582912;  // 1.5 * 2^23: around this number float32 has whole numbers only
  return difference(sum(value, shift), shift);
}

}  // namespace troupe::element_formats
