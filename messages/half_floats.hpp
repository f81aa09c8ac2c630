// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/messages/float_bits.hpp>

/// Conversions of float32 to bfloat16 and float16, and back. The 16-bit numbers are plain bits (std::uint16_t). No function
/// here branches, so compilers make vector instructions of loops over these functions.
///   HF-1  each conversion has the bits of c10::BFloat16 and c10::Half on the host. Rounding is to nearest even; too large
///         numbers become infinity; denormal numbers keep their values. NaN becomes 0x7fc0 in bfloat16, and 0x7e00 with its
///         sign in float16.
///   HF-2  a GPU, and a thread that flushes denormal numbers to zero, compute the same bits. The reason: no sum here is
///         denormal, and a denormal term is too small to change a sum.
namespace troupe::element_formats {

TROUPE_HOST_DEVICE inline std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t odd = (bits >> 16) & 1;
  const std::uint32_t rounded = (bits + 0x7fff + odd) >> 16;
  return static_cast<std::uint16_t>((bits & ~sign_bit) > infinity_bits ? 0x7fc0 : rounded);
}

TROUPE_HOST_DEVICE inline float from_bfloat16(std::uint16_t bits) { return float_of(static_cast<std::uint32_t>(bits) << 16); }

/// Rounds by adding a larger number to the magnitude. The sum has no room for the bits below float16's precision, so the sum is
/// rounded as float16 is. The larger number depends on the exponent of the magnitude; below float16's normal range the larger
/// number is constant.
TROUPE_HOST_DEVICE inline std::uint16_t to_float16(float value) {
  constexpr std::uint32_t least_exponent = 0x38800000;  // 2^-14, float16's least normal number
  constexpr std::uint32_t too_large = 0x47800000;       // 2^16, which becomes infinity
  constexpr std::uint32_t thirteen = 13U << 23;         // the significand of float32 has 13 bits more
  const std::uint32_t sign = (bits_of(value) & sign_bit) >> 16;
  const std::uint32_t magnitude = magnitude_bits(value);
  const std::uint32_t bounded = magnitude < too_large ? magnitude : too_large;
  const std::uint32_t own = bounded & infinity_bits;
  const std::uint32_t exponent = own > least_exponent ? own : least_exponent;
  const std::uint32_t larger = exponent + thirteen;
  const std::uint32_t total = bits_of(sum(float_of(bounded), float_of(larger)));
  // The difference is the significand with its leading one, which adds 1 to the exponent.
  const std::uint32_t narrow = ((exponent - least_exponent) >> 13) + (total - larger);
  return static_cast<std::uint16_t>(sign | (magnitude > infinity_bits ? 0x7e00 : narrow));
}

TROUPE_HOST_DEVICE inline float from_float16(std::uint16_t bits) {
  constexpr std::uint32_t half =
    0x3f000000;  // 0.5: the last bit of its significand is worth 2^-24, as the last bit of a denormal float16
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t magnitude = bits & 0x7fff;
  const std::uint32_t shifted = magnitude << 13;
  const std::uint32_t normal = shifted + (112U << 23);
  const std::uint32_t denormal = bits_of(difference(float_of(half | magnitude), float_of(half)));
  const std::uint32_t not_finite = shifted | infinity_bits | (magnitude > 0x7c00 ? 0x400000 : 0);
  return float_of(sign | (magnitude < 0x400 ? denormal : magnitude < 0x7c00 ? normal : not_finite));
}

}  // namespace troupe::element_formats
