// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/devices/cuda/float_bits.hpp>

/// float32 in 8 bits an element. A block of 256 elements has one scale: its largest magnitude divided by 127. An element is a
/// code from -127 to 127, and means its code times the scale. What rounding loses is kept in a residual, which is added to the
/// elements that are encoded next (error feedback).
///   BC-1  each block by itself, also a last block that is shorter. The code is the nearest to element / scale, the even one of two.
///   BC-2  a decoded element differs from the element plus its residual by at most half the scale, and a little of its rounding.
///         Only if the scale is a denormal number, the difference may be larger. The new residual is this difference.
///   BC-3  a block of zeros has the scale 0. Of a block with magnitudes below 2^-143 the scale may be 0 too; the residual keeps it.
///   BC-4  if an element, or its sum with the residual, is NaN or infinite, the scale of the block is NaN and the whole block
///         decodes to NaN. The residual of such a block becomes 0, so later blocks are not NaN because of this one.
///   BC-5  finite elements decode to finite elements, also the largest ones.
///   BC-6  the same bits come out on a GPU, on the host, and in whatever order the threads run.
///   BC-7  over a grid of codec_blocks() blocks, the kernels' bodies write each code, scale, residual and element once, and
///         nothing beside them.
namespace troupe::devices::cuda {

inline constexpr std::uint32_t block_elements = 256;
inline constexpr std::int32_t largest_code = 127;
// 127 times a larger scale could be infinite after rounding.
inline constexpr std::uint32_t largest_scale_bits = 0x7c010203;

/// The scale of a block whose largest magnitude has these bits.
TROUPE_HOST_DEVICE inline float scale_of(std::uint32_t largest_magnitude_bits) {
  if (largest_magnitude_bits >= infinity_bits) return float_of(nan_bits);
  const float scale = quotient(float_of(largest_magnitude_bits), static_cast<float>(largest_code));
  return bits_of(scale) > largest_scale_bits ? float_of(largest_scale_bits) : scale;
}

/// The code of an element of a block with a scale that scale_of() gave.
TROUPE_HOST_DEVICE inline std::int8_t code_of(float element, float scale) {
  if (bits_of(scale) == 0 || bits_of(scale) >= infinity_bits) return 0;
  constexpr auto limit = static_cast<float>(largest_code);
  float whole = nearest_whole(quotient(element, scale));
  if (whole > limit) whole = limit;
  if (whole < -limit) whole = -limit;
  return static_cast<std::int8_t>(whole);
}

/// What a code means. Any bytes may come in: a scale that is not finite gives NaN.
TROUPE_HOST_DEVICE inline float decoded(std::int8_t code, float scale) {
  if (magnitude_bits(scale) >= infinity_bits) return float_of(nan_bits);
  return product(static_cast<float>(code), scale);
}

/// What is left of an element after its block was encoded.
TROUPE_HOST_DEVICE inline float left_over(float element, std::int8_t code, float scale) {
  if (bits_of(scale) >= infinity_bits) return 0;
  return difference(element, decoded(code, scale));
}

/// What a kernel encodes. Without `residual` (null), what rounding loses is lost.
struct encoding {
  const float* elements;
  float* residual;
  std::int8_t* codes;
  float* scales;
  std::uint64_t count;
};

/// What a kernel decodes.
struct decoding {
  const std::int8_t* codes;
  const float* scales;
  float* elements;
  std::uint64_t count;
};

// A warp has one block of elements, so each of its threads (lanes) has eight elements. Neighbouring lanes have neighbouring
// elements, and elements need no alignment.
inline constexpr std::uint32_t lanes = 32;
inline constexpr std::uint32_t elements_of_lane = block_elements / lanes;

TROUPE_HOST_DEVICE constexpr std::uint64_t codec_blocks(std::uint64_t count) {
  return parts_of(count, std::uint64_t{block_elements} * (threads_in_block / lanes));
}

/// The first element of a thread; the next one is `lanes` further.
TROUPE_HOST_DEVICE inline std::uint64_t first_element(thread_place at) {
  const std::uint64_t warp = at.block * (threads_in_block / lanes) + at.thread / lanes;
  return warp * block_elements + at.thread % lanes;
}

/// The elements of a thread with their residuals added.
struct lane_elements {
  float sums[elements_of_lane];
};

/// The first half of encoding. Writes the largest magnitude of the thread's elements to magnitudes[at.thread]; all threads of the
/// block share `magnitudes`, and wait for each other between the halves.
TROUPE_HOST_DEVICE inline lane_elements gather_part(const encoding& what, std::uint32_t* magnitudes, thread_place at) {
  lane_elements own;
  std::uint32_t largest = 0;
  std::uint64_t element = first_element(at);
  for (std::uint32_t i = 0; i < elements_of_lane; ++i, element += lanes) {
    own.sums[i] = 0;
    if (element >= what.count) continue;  // the zeros count for no magnitude
    own.sums[i] = what.residual == nullptr ? what.elements[element] : sum(what.elements[element], what.residual[element]);
    const std::uint32_t magnitude = magnitude_bits(own.sums[i]);
    if (magnitude > largest) largest = magnitude;
  }
  magnitudes[at.thread] = largest;
  return own;
}

/// The second half of encoding.
TROUPE_HOST_DEVICE inline void encode_part(const encoding& what, const lane_elements& own, const std::uint32_t* magnitudes,
                                           thread_place at) {
  const std::uint64_t first = first_element(at);
  const std::uint32_t* of_warp = magnitudes + (at.thread - at.thread % lanes);
  std::uint32_t largest = 0;
  for (std::uint32_t i = 0; i < lanes; ++i)
    if (of_warp[i] > largest) largest = of_warp[i];
  const float scale = scale_of(largest);
  std::uint64_t element = first;
  for (std::uint32_t i = 0; i < elements_of_lane; ++i, element += lanes) {
    if (element >= what.count) break;
    const std::int8_t code = code_of(own.sums[i], scale);
    what.codes[element] = code;
    if (what.residual != nullptr) what.residual[element] = left_over(own.sums[i], code, scale);
  }
  if (at.thread % lanes == 0 && first < what.count) what.scales[first / block_elements] = scale;
}

TROUPE_HOST_DEVICE inline void decode_part(const decoding& what, thread_place at) {
  std::uint64_t element = first_element(at);
  for (std::uint32_t i = 0; i < elements_of_lane; ++i, element += lanes)
    if (element < what.count) what.elements[element] = decoded(what.codes[element], what.scales[element / block_elements]);
}

}  // namespace troupe::devices::cuda
