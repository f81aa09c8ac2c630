// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

/// The elements of the wire formats (wire_format.hpp): plain loops over float32 elements that the compiler vectorises.
/// Rounding is to the nearest value, ties to even.
///   EF-1  narrow_bfloat16 has the bits of c10::BFloat16, narrow_float16 those of c10::Half, except for the bits of NaN.
///   EF-2  what widen_* makes of narrowed elements is exact.
///   EF-3  a block of int8 has the scale m / 127, where m is the largest magnitude in the block. quantise() adds the residual
///         first, and leaves in the residual what it did not send.
namespace troupe::element_formats {

/// Elements in a block of int8.
inline constexpr std::size_t block = 256;

constexpr std::size_t blocks_of(std::size_t elements) { return (elements + block - 1) / block; }

/// Returns false if a finite element became infinite.
bool narrow_bfloat16(const float* from, std::uint16_t* to, std::size_t count);
void widen_bfloat16(const std::uint16_t* from, float* to, std::size_t count);

/// The bits of the largest magnitude: those of an infinity or of NaN if there is one.
std::uint32_t largest_magnitude(const float* from, std::size_t count);

/// Multiplies each element by `factor` first. Pre: all products are finite, and below 65520 in magnitude.
void narrow_float16(const float* from, std::uint16_t* to, std::size_t count, float factor);
/// Multiplies each element by both factors. (Two factors, because one float32 can't hold each power of two that is needed.)
void widen_float16(const std::uint16_t* from, float* to, std::size_t count, float factor, float second_factor);

/// Writes blocks_of(count) scales. `residual`: null, or `count` elements. Returns false if an element, with its residual, is infinite
/// or NaN; what was written then has no meaning.
bool quantise(const float* from, float* residual, std::int8_t* to, float* scales, std::size_t count);
void dequantise(const std::int8_t* from, const float* scales, float* to, std::size_t count);

}  // namespace troupe::element_formats
