// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <troupe/devices/cuda/grid.hpp>
#include <troupe/devices/cuda/quads.hpp>
#include <troupe/messages/int8_blocks.hpp>

/// The bodies of the kernels that encode float32 elements in 8 bits each and decode them. messages/int8_blocks.hpp defines the
/// codes and their layout.
///   KE-1  the results have the same bits on a GPU and on the host, in whatever order the threads run.
///   KE-2  a grid of codec_blocks() blocks writes each code, scale, residual and element once, and zeros after the last code.
///         It writes nothing else.
namespace troupe::devices::cuda {

using element_formats::block_elements;

/// The arguments of the kernel that encodes. `residual`: rounding errors of an earlier encoding, which are added to the
/// elements and then replaced by the new ones. Null: rounding errors are dropped.
struct encoding {
  const float* elements;
  float* residual;
  std::int8_t* bytes;  // int8_bytes(count) bytes, aligned for float32
  std::uint64_t count;
};

struct decoding {
  const std::int8_t* bytes;  // int8_bytes(count) bytes, aligned for float32
  float* elements;
  std::uint64_t count;
};

// A warp handles one block of elements. Each thread of the warp handles two quads of the block. Neighbouring threads
// handle neighbouring quads.
inline constexpr std::uint32_t threads_in_warp = 32;
inline constexpr std::uint32_t quads_of_thread = block_elements / threads_in_warp / quad_elements;

TROUPE_HOST_DEVICE constexpr std::uint64_t codec_blocks(std::uint64_t count) {
  return ceil_div(count, std::uint64_t{block_elements} * (threads_in_block / threads_in_warp));
}

/// Returns the number of the block of elements that the warp of this thread handles.
TROUPE_HOST_DEVICE inline std::uint64_t block_of(thread_index at) {
  return at.block * (threads_in_block / threads_in_warp) + at.thread / threads_in_warp;
}

/// Returns the index of the first element in quad `number` (0 or 1) of this thread.
TROUPE_HOST_DEVICE inline std::uint64_t first_element(thread_index at, std::uint32_t number) {
  return block_of(at) * block_elements + std::uint64_t{number * threads_in_warp + at.thread % threads_in_warp} * quad_elements;
}

/// The elements of one thread, with their residuals added. Positions after the last element have the value 0.
struct thread_elements {
  quad<float> sums[quads_of_thread];
  std::uint32_t largest = 0;  // the bits of the largest absolute value
};

/// The first half of encoding: reads the elements of a thread. The kernel then computes the maximum of `largest` over all
/// threads of the warp.
TROUPE_HOST_DEVICE inline thread_elements gather_tile(const encoding& what, thread_index at) {
  thread_elements own;
  for (std::uint32_t i = 0; i < quads_of_thread; ++i) {
    const std::uint64_t element = first_element(at, i);
    const std::uint32_t left = left_in_quad(element, what.count);
    own.sums[i] = read_quad(what.elements + element, left);
    if (what.residual != nullptr) {
      const quad<float> kept = read_quad(what.residual + element, left);
      for (std::uint32_t k = 0; k < quad_elements; ++k) own.sums[i].of[k] = element_formats::sum(own.sums[i].of[k], kept.of[k]);
    }
  }
  for (const quad<float>& each : own.sums) {
    for (const float element : each.of) {
      const std::uint32_t magnitude = element_formats::magnitude_bits(element);
      own.largest = magnitude > own.largest ? magnitude : own.largest;
    }
  }
  return own;
}

/// The second half of encoding: writes codes, residuals and the scale. `largest`: the maximum over all threads of the warp.
TROUPE_HOST_DEVICE inline void encode_tile(const encoding& what, const thread_elements& own, std::uint32_t largest,
                                           thread_index at) {
  const float scale = element_formats::scale_of(largest);
  for (std::uint32_t i = 0; i < quads_of_thread; ++i) {
    const std::uint64_t element = first_element(at, i);
    const std::uint32_t left = left_in_quad(element, what.count);
    if (left == 0) break;
    quad<std::int8_t> codes;
    for (std::uint32_t k = 0; k < quad_elements; ++k) codes.of[k] = element_formats::code_of(own.sums[i].of[k], scale);
    write_quad(what.bytes + element, codes, quad_elements);  // writes zeros after the last element (KE-2)
    if (what.residual != nullptr) {
      quad<float> kept;
      for (std::uint32_t k = 0; k < quad_elements; ++k)
        kept.of[k] = element_formats::left_over(own.sums[i].of[k], codes.of[k], scale);
      write_quad(what.residual + element, kept, left);
    }
  }
  const std::uint64_t block = block_of(at);
  if (at.thread % threads_in_warp == 0 && block * block_elements < what.count)
    element_formats::scales_in(what.bytes, what.count)[block] = scale;
}

TROUPE_HOST_DEVICE inline void decode_tile(const decoding& what, thread_index at) {
  const std::uint64_t block = block_of(at);
  if (block * block_elements >= what.count) return;
  const float scale = element_formats::scales_in(what.bytes, what.count)[block];
  for (std::uint32_t i = 0; i < quads_of_thread; ++i) {
    const std::uint64_t element = first_element(at, i);
    const std::uint32_t left = left_in_quad(element, what.count);
    const quad<std::int8_t> codes = read_quad(what.bytes + element, left);
    quad<float> made;
    for (std::uint32_t k = 0; k < quad_elements; ++k) made.of[k] = element_formats::decoded(codes.of[k], scale);
    write_quad(what.elements + element, made, left);
  }
}

}  // namespace troupe::devices::cuda
