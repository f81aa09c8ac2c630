// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/devices/cuda/float_bits.hpp>

/// float32 as bfloat16 and float16, and back: the bits of the 16-bit formats, without their types.
///   HF-1  each conversion has the bits of c10::BFloat16 and c10::Half on the host. Rounding is to nearest even; too large numbers
///         become infinity; denormal numbers are numbers. NaN becomes 0x7fc0 in bfloat16, and 0x7e00 with its sign in float16.
///   HF-2  there is no arithmetic on floats here, only on bits. So a GPU has the same bits.
namespace troupe::devices::cuda {

TROUPE_HOST_DEVICE inline std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & ~sign_bit) > infinity_bits) return 0x7fc0;
  const std::uint32_t odd = (bits >> 16) & 1;
  return static_cast<std::uint16_t>((bits + 0x7fff + odd) >> 16);
}

TROUPE_HOST_DEVICE inline float from_bfloat16(std::uint16_t bits) { return float_of(static_cast<std::uint32_t>(bits) << 16); }

TROUPE_HOST_DEVICE inline std::uint16_t to_float16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits & sign_bit) >> 16;
  const std::uint32_t magnitude = bits & ~sign_bit;
  if (magnitude > infinity_bits) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x47800000) return static_cast<std::uint16_t>(sign | 0x7c00);  // 65536 and more
  std::uint32_t kept;             // the mantissa with its leading one, without the bits that are dropped
  std::uint32_t width;            // how many bits are dropped
  std::uint32_t base;             // what the exponent adds
  if (magnitude >= 0x38800000) {  // 2^-14, the smallest normal number
    width = 13;
    base = ((magnitude >> 23) - 112) << 10;
    kept = magnitude & 0x7fffff;
  } else {
    const std::uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return static_cast<std::uint16_t>(sign);  // less than 2^-25, half the smallest number
    width = 126 - exponent;
    base = 0;
    kept = (magnitude & 0x7fffff) | 0x800000;
  }
  const std::uint32_t half = std::uint32_t{1} << (width - 1);
  const std::uint32_t odd = (kept >> width) & 1;
  return static_cast<std::uint16_t>(sign | (base + ((kept + half - 1 + odd) >> width)));
}

TROUPE_HOST_DEVICE inline float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return float_of(sign | infinity_bits | (mantissa == 0 ? 0 : 0x400000) | mantissa << 13);
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  if (mantissa == 0) return float_of(sign);
  std::uint32_t shifts = 0;
  for (; mantissa < 0x400; mantissa <<= 1) ++shifts;
  return float_of(sign | (113 - shifts) << 23 | (mantissa & 0x3ff) << 13);
}

}  // namespace troupe::devices::cuda
