// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/devices/cuda/grid.hpp>
#include <troupe/messages/int8_blocks.hpp>

/// The bodies of kernels that encode float32 in 8 bits and decode it. messages/int8_blocks.hpp has the bits and where they lie.
///   KE-1  the same bits come out on a GPU, on the host, and in whatever order the threads run.
///   KE-2  over a grid of codec_blocks() blocks, the kernels' bodies write each code, scale, residual and element once, the zeros
///         behind the codes too, and nothing beside them.
namespace troupe::devices::cuda {

using element_formats::block_elements;

/// What a kernel encodes. Without `residual` (null), what rounding loses is lost.
struct encoding {
  const float* elements;
  float* residual;
  std::int8_t* bytes;  // int8_bytes(count), aligned for float32
  std::uint64_t count;
};

/// What a kernel decodes.
struct decoding {
  const std::int8_t* bytes;  // int8_bytes(count), aligned for float32
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
    if (element >= what.count) break;  // encode_part() reads no more sums either
    own.sums[i] =
      what.residual == nullptr ? what.elements[element] : element_formats::sum(what.elements[element], what.residual[element]);
    const std::uint32_t magnitude = element_formats::magnitude_bits(own.sums[i]);
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
  const float scale = element_formats::scale_of(largest);
  std::uint64_t element = first;
  for (std::uint32_t i = 0; i < elements_of_lane; ++i, element += lanes) {
    if (element >= what.count) {
      if (element < element_formats::scales_offset(what.count)) what.bytes[element] = 0;
      break;
    }
    const std::int8_t code = element_formats::code_of(own.sums[i], scale);
    what.bytes[element] = code;
    if (what.residual != nullptr) what.residual[element] = element_formats::left_over(own.sums[i], code, scale);
  }
  if (at.thread % lanes == 0 && first < what.count)
    element_formats::scales_in(what.bytes, what.count)[first / block_elements] = scale;
}

TROUPE_HOST_DEVICE inline void decode_part(const decoding& what, thread_place at) {
  const float* scales = element_formats::scales_in(what.bytes, what.count);
  std::uint64_t element = first_element(at);
  for (std::uint32_t i = 0; i < elements_of_lane; ++i, element += lanes)
    if (element < what.count)
      what.elements[element] = element_formats::decoded(what.bytes[element], scales[element / block_elements]);
}

}  // namespace troupe::devices::cuda
