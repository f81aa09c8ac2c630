// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/compression.hpp>

#include <algorithm>
#include <string>

#include <troupe/devices/cuda/block_codec.hpp>
#include <troupe/devices/cuda/half_floats.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::devices {

namespace {

static_assert(elements_of_block == cuda::block_elements);

void expect_size(const char* function, const char* what, std::size_t expected, std::size_t size) {
  if (size == expected) return;
  throw error(errc::misuse, std::string(function) + ": expected a span of " + std::to_string(expected) + " for " + what +
                              ", got " + std::to_string(size));
}

template <auto Convert, class From, class To>
void convert(const char* function, std::span<const From> from, std::span<To> to) {
  expect_size(function, "the results", from.size(), to.size());
  std::transform(from.begin(), from.end(), to.begin(), [](From each) { return Convert(each); });
}

struct block {
  std::size_t begin, end;
};

block block_at(std::size_t index, std::size_t elements) {
  return {index * elements_of_block, std::min((index + 1) * elements_of_block, elements)};
}

}  // namespace

void to_bfloat16(std::span<const float> elements, std::span<std::uint16_t> bits) {
  convert<cuda::to_bfloat16>("to_bfloat16", elements, bits);
}
void from_bfloat16(std::span<const std::uint16_t> bits, std::span<float> elements) {
  convert<cuda::from_bfloat16>("from_bfloat16", bits, elements);
}
void to_float16(std::span<const float> elements, std::span<std::uint16_t> bits) {
  convert<cuda::to_float16>("to_float16", elements, bits);
}
void from_float16(std::span<const std::uint16_t> bits, std::span<float> elements) {
  convert<cuda::from_float16>("from_float16", bits, elements);
}

void encode_blocks(std::span<const float> elements, std::span<float> residual, std::span<std::int8_t> codes,
                   std::span<float> scales) {
  if (!residual.empty()) expect_size("encode_blocks", "the residual", elements.size(), residual.size());
  expect_size("encode_blocks", "the codes", elements.size(), codes.size());
  expect_size("encode_blocks", "the scales", scales_for(elements.size()), scales.size());
  float sums[elements_of_block];
  for (std::size_t index = 0; index < scales.size(); ++index) {
    const auto [begin, end] = block_at(index, elements.size());
    std::uint32_t largest = 0;
    for (std::size_t i = begin; i < end; ++i) {
      sums[i - begin] = residual.empty() ? elements[i] : cuda::sum(elements[i], residual[i]);
      largest = std::max(largest, cuda::magnitude_bits(sums[i - begin]));
    }
    const float scale = scales[index] = cuda::scale_of(largest);
    for (std::size_t i = begin; i < end; ++i) codes[i] = cuda::code_of(sums[i - begin], scale);
    for (std::size_t i = begin; i < end && !residual.empty(); ++i)
      residual[i] = cuda::left_over(sums[i - begin], codes[i], scale);
  }
}

void decode_blocks(std::span<const std::int8_t> codes, std::span<const float> scales, std::span<float> elements) {
  expect_size("decode_blocks", "the scales", scales_for(codes.size()), scales.size());
  expect_size("decode_blocks", "the elements", codes.size(), elements.size());
  for (std::size_t index = 0; index < scales.size(); ++index) {
    const auto [begin, end] = block_at(index, codes.size());
    for (std::size_t i = begin; i < end; ++i) elements[i] = cuda::decoded(codes[i], scales[index]);
  }
}

}  // namespace troupe::devices
