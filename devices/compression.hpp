// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Compression of float32 on the host: the same bits as the kernels of devices/cuda/ make on a GPU.
///   KC-1  spans whose sizes do not fit together are refused with troupe::error(misuse) that names them; nothing is written then.
///   KC-2  the results are those of devices/cuda/half_floats.hpp and devices/cuda/block_codec.hpp, bit for bit.
/// Spans may not overlap. Any thread may call these functions.
namespace troupe::devices {

/// The elements that share a scale.
inline constexpr std::size_t elements_of_block = 256;

/// The number of scales that so many elements have.
constexpr std::size_t scales_for(std::size_t elements) {
  return elements / elements_of_block + (elements % elements_of_block != 0);
}

void to_bfloat16(std::span<const float> elements, std::span<std::uint16_t> bits);
void from_bfloat16(std::span<const std::uint16_t> bits, std::span<float> elements);
void to_float16(std::span<const float> elements, std::span<std::uint16_t> bits);
void from_float16(std::span<const std::uint16_t> bits, std::span<float> elements);

/// Encodes to one code an element and scales_for() scales. `residual` is added to the elements first, and then holds what rounding
/// lost. It has the size of `elements`, and is zero at first; an empty residual stands for none.
void encode_blocks(std::span<const float> elements, std::span<float> residual, std::span<std::int8_t> codes,
                   std::span<float> scales);

/// Decodes any codes and scales. A block whose scale is NaN or infinite becomes NaN.
void decode_blocks(std::span<const std::int8_t> codes, std::span<const float> scales, std::span<float> elements);

}  // namespace troupe::devices
