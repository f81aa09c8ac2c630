// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/device_codec.hpp>

#include <cmath>
#include <cstdint>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <troupe/devices/cuda/functions.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/devices/tensor_packing.hpp>
#include <troupe/messages/int8_blocks.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe::devices {

namespace {

// In the bits of float32, where an exponent is `bias` more than its value.
constexpr int magnitude_mask = 0x7fffffff;
constexpr int exponent_mask = 0x7f800000;
constexpr int bias = 127;
constexpr int one_exponent = 1 << 23;
constexpr int largest_half_exponent = 14;  // as in packed_tensors.cpp

// The elements of a dense float32 tensor, in the order that they have in memory.
at::Tensor in_order(const at::Tensor& tensor) { return tensor.as_strided({tensor.numel()}, {1}); }

/// 2 to the exponent that float16 needs for a largest magnitude with these bits, which is not infinite or NaN.
at::Tensor float16_factor(const at::Tensor& largest) {
  // The sum of both exponents. An exponent below `least` would need a factor above 2^most_exponent.
  constexpr int sum = largest_half_exponent + 2 * bias;
  constexpr int most = most_exponent + bias;
  constexpr int least = sum - most;
  const auto exponent = largest.bitwise_and(exponent_mask).clamp_min(least * one_exponent);
  return exponent.mul(-1).add(least * one_exponent).add(most * one_exponent).view(at::kFloat);
}

at::Tensor halves_of(const at::Tensor& elements, at::ScalarType type) {
  auto result = at::empty({elements.numel()}, elements.options().dtype(type));
  result.copy_(elements, true);
  return result.view(at::kByte);
}

}  // namespace

bool is_codable(const at::Tensor& tensor, wire_format format) {
  return tensor.scalar_type() == at::kFloat && tensor.nbytes() <= max_payload_bytes &&
         tensor.numel() >= least_packed_elements && format != wire_format::exact &&
         (format != wire_format::int8 || kernels_for(tensor.device()) != nullptr);
}

coded_tensor encode(std::size_t index, const at::Tensor& tensor, wire_format format, at::Tensor* residual) {
  const auto elements = in_order(tensor);
  coded_tensor result{index, tensor, {}, {}, {.format = format, .exponent = 0, .sizes = tensor.sizes().vec(), .strides = {}}};
  if (!has_contiguous_strides(tensor)) result.how.strides = tensor.strides().vec();
  if (format == wire_format::int8) {
    const auto count = static_cast<std::uint64_t>(tensor.numel());
    const auto size = static_cast<std::int64_t>(element_formats::int8_bytes(count));
    result.bytes = at::empty({size}, tensor.options().dtype(at::kByte));
    const auto* kernels = kernels_for(tensor.device());
    const cuda::encoding what{static_cast<const float*>(elements.const_data_ptr()),
                              residual != nullptr ? residual->mutable_data_ptr<float>() : nullptr,
                              static_cast<std::int8_t*>(result.bytes.mutable_data_ptr()), count};
    expect_launched(kernels->encode_blocks(&what, current_stream(tensor.device())), "encode", tensor.device(), *kernels);
    return result;
  }
  result.largest = elements.view(at::kInt).bitwise_and(magnitude_mask).amax();
  result.bytes = format == wire_format::bfloat16 ? halves_of(elements, at::kBFloat16)
                                                 : halves_of(elements * float16_factor(result.largest), at::kHalf);
  return result;
}

bool is_decodable(const packing& how, c10::Device device) {
  return how.format != wire_format::exact && !device.is_cpu() && is_present(device) &&
         (how.format != wire_format::int8 || kernels_for(device) != nullptr);
}

at::Tensor decode(const at::Tensor& bytes, const packing& how) {
  const c10::DeviceGuard guard(bytes.device());
  std::int64_t count = 1;
  for (const auto size : how.sizes) count *= size;
  auto result = at::empty({count}, bytes.options().dtype(at::kFloat));
  if (how.format == wire_format::int8) {
    const auto* kernels = kernels_for(bytes.device());
    const cuda::decoding what{static_cast<const std::int8_t*>(bytes.const_data_ptr()), result.mutable_data_ptr<float>(),
                              static_cast<std::uint64_t>(count)};
    expect_launched(kernels->decode_blocks(&what, current_stream(bytes.device())), "decode", bytes.device(), *kernels);
  } else {
    result.copy_(bytes.view(how.format == wire_format::bfloat16 ? at::kBFloat16 : at::kHalf), true);
    const int half = how.exponent / 2;  // one float32 can't hold each power of two
    if (how.exponent != 0) result.mul_(std::ldexp(1.0, -half)).mul_(std::ldexp(1.0, half - how.exponent));
  }
  return how.strides.empty() ? result.view(how.sizes) : result.as_strided(how.sizes, how.strides);
}

}  // namespace troupe::devices
