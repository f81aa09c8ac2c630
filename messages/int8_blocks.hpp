// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/cuda/block_codec_test.cpp, tests/messages/element_formats_test.cpp
#pragma once

#include <cstdint>

#include <troupe/messages/float_bits.hpp>

/// An encoding of float32 in 8 bits an element. The bytes lie in one piece of memory, which messages carry and which kernels
/// write and read:
///   a code for each element    int8, in the order of the elements
///   zeros                      until the number of bytes is a multiple of 4
///   a scale for each block     float32. A block has 256 elements, the last block has the rest
/// A code is a whole number from -127 to 127. The code times the scale of its block is the element. The rounding error is kept
/// in a residual, which is added to the elements that are encoded next (error feedback).
///   BC-1  each block is encoded by itself. Its scale is its largest magnitude divided by 127. A code is the whole number
///         nearest to element / scale, or the even one of two that are equally near.
///   BC-2  a decoded element differs from the element plus its residual by at most half the scale, plus a rounding error. Only
///         if the scale is a denormal number, the difference may be larger. The new residual is this difference.
///   BC-3  a block of zeros has the scale 0. A block with magnitudes below 2^-143 may have the scale 0, too; the residual then
///         keeps its elements.
///   BC-4  if an element, or its sum with the residual, is NaN or infinite, the scale of the block is NaN and the whole block
///         decodes to NaN. The residual of such a block becomes 0, so the NaN does not reach the elements that are encoded
///         next.
///   BC-5  finite elements decode to finite elements, also the largest ones.
namespace troupe::element_formats {

inline constexpr std::uint32_t block_elements = 256;
inline constexpr std::int32_t largest_code = 127;
// The largest scale of finite elements. A larger scale times 127 could become infinite by rounding.
inline constexpr std::uint32_t largest_scale_bits = 0x7c010203;

/// Returns the number of blocks, which is the number of scales. `elements` is below 2^63.
TROUPE_HOST_DEVICE constexpr std::uint64_t blocks_of(std::uint64_t elements) {
  return (elements + block_elements - 1) / block_elements;
}

/// Returns how many bytes lie before the first scale.
TROUPE_HOST_DEVICE constexpr std::uint64_t scales_offset(std::uint64_t elements) {
  return (elements + sizeof(float) - 1) / sizeof(float) * sizeof(float);
}

/// Returns how many bytes the encoding of `elements` elements has.
TROUPE_HOST_DEVICE constexpr std::uint64_t int8_bytes(std::uint64_t elements) {
  return scales_offset(elements) + blocks_of(elements) * sizeof(float);
}

/// Returns the address of the first scale. `memory` has int8_bytes(elements) bytes and is aligned for float32.
TROUPE_HOST_DEVICE inline float* scales_in(std::int8_t* memory, std::uint64_t elements) {
  return reinterpret_cast<float*>(memory + scales_offset(elements));
}
TROUPE_HOST_DEVICE inline const float* scales_in(const std::int8_t* memory, std::uint64_t elements) {
  return reinterpret_cast<const float*>(memory + scales_offset(elements));
}

/// Returns the scale of a block whose largest magnitude has these bits.
TROUPE_HOST_DEVICE inline float scale_of(std::uint32_t largest_magnitude_bits) {
  if (largest_magnitude_bits >= infinity_bits) return float_of(nan_bits);
  const float scale = quotient(float_of(largest_magnitude_bits), static_cast<float>(largest_code));
  return bits_of(scale) > largest_scale_bits ? float_of(largest_scale_bits) : scale;
}

/// Whether scale_of() gives this scale to a block of finite elements.
TROUPE_HOST_DEVICE inline bool is_of_finite_block(float scale) { return bits_of(scale) <= largest_scale_bits; }

/// Returns the code of an element. `scale`: the result of scale_of() for its block.
TROUPE_HOST_DEVICE inline std::int8_t code_of(float element, float scale) {
  if (bits_of(scale) == 0 || bits_of(scale) >= infinity_bits) return 0;
  constexpr auto limit = static_cast<float>(largest_code);
  float whole = nearest_whole(quotient(element, scale));
  whole = whole > limit ? limit : whole;
  whole = whole < -limit ? -limit : whole;
  return static_cast<std::int8_t>(static_cast<std::int32_t>(whole));
}

/// Returns the element that a code stands for; NaN if the scale is not finite. The arguments may be any bytes.
TROUPE_HOST_DEVICE inline float decoded(std::int8_t code, float scale) {
  if (magnitude_bits(scale) >= infinity_bits) return float_of(nan_bits);
  return product(static_cast<float>(code), scale);
}

/// Returns the new residual of an element, after its block was encoded.
TROUPE_HOST_DEVICE inline float left_over(float element, std::int8_t code, float scale) {
  if (bits_of(scale) >= infinity_bits) return 0;
  return difference(element, decoded(code, scale));
}

}  // namespace troupe::element_formats
