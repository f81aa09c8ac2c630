// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

/// The elements of the wire formats (wire_format.hpp) on the host: loops over the functions of half_floats.hpp and
/// int8_blocks.hpp, which define the bits. Compilers make vector instructions of these loops.
///   EF-1  narrow_* and widen_* convert each element as the functions of half_floats.hpp do. Those for float16 also multiply
///         each element by factors.
///   EF-2  quantise() and dequantise() apply the functions of int8_blocks.hpp to each block.
///   EF-3  quantise() and narrow_bfloat16() return false if the format can't hold an element.
namespace troupe::element_formats {

/// Converts to bfloat16. Returns false if a finite element became infinite.
bool narrow_bfloat16(const float* from, std::uint16_t* to, std::size_t count);
void widen_bfloat16(const std::uint16_t* from, float* to, std::size_t count);

/// Returns the bits of the largest magnitude. If an element is infinite or NaN, the bits are those of an infinity or of a NaN.
std::uint32_t largest_magnitude(const float* from, std::size_t count);

/// Multiplies each element by `factor`, then converts it to float16.
void narrow_float16(const float* from, std::uint16_t* to, std::size_t count, float factor);
/// Converts each element from float16, then multiplies it by both factors. The factors are two, because one float32 can't hold
/// each power of two that is needed.
void widen_float16(const std::uint16_t* from, float* to, std::size_t count, float factor, float second_factor);

/// Encodes `count` elements to `to`, and writes blocks_of(count) scales. `residual`: null, or `count` elements. Returns false
/// if an element, with its residual, is infinite or NaN; the memory written then has no meaning.
bool quantise(const float* from, float* residual, std::int8_t* to, float* scales, std::size_t count);
void dequantise(const std::int8_t* from, const float* scales, float* to, std::size_t count);

}  // namespace troupe::element_formats
