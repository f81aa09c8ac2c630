// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/packed_tensors.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/TensorImpl.h>

#include <troupe/messages/element_formats.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/int8_blocks.hpp>
#include <troupe/messages/tensor_rules.hpp>
#include <troupe/messages/tensors_over_storages.hpp>

namespace troupe {

namespace {

namespace formats = element_formats;

constexpr int largest_exponent = 14;  // of the largest element in float16: rounding makes this element 2^15 at most

at::Tensor bytes_in(tensor_memory& memory, std::uint64_t bytes) {
  auto result = tensor_over(memory.make(bytes), at::kByte);
  result.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<std::int64_t>(bytes)});
  return result;
}

/// Makes another tensor with the same elements (copy on write). Pre: tensor_memory has made the storage of the elements.
at::Tensor twin_of(const at::Tensor& tensor) {
  auto result = tensor_over(troupe::twin_of(tensor.unsafeGetTensorImpl()->unsafe_storage()), tensor.scalar_type());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return result;
}

float power_of_two(int exponent) { return std::ldexp(1.0F, exponent); }

bool pack_bfloat16(const float* from, std::size_t count, at::Tensor& to) {
  return formats::narrow_bfloat16(from, reinterpret_cast<std::uint16_t*>(to.mutable_data_ptr()), count);
}

/// The exponent for a tensor whose largest magnitude has these bits; none if float16 can't hold it.
std::optional<std::int32_t> float16_exponent(std::uint32_t largest) {
  if (largest >= std::bit_cast<std::uint32_t>(0x1p+127F)) return std::nullopt;
  return largest == 0 ? 0 : std::min(most_exponent, largest_exponent - std::ilogb(std::bit_cast<float>(largest)));
}

bool pack_float16(const float* from, std::size_t count, at::Tensor& to, std::int32_t& exponent) {
  const auto fitting = float16_exponent(formats::largest_magnitude(from, count));
  if (!fitting) return false;
  exponent = *fitting;
  formats::narrow_float16(from, reinterpret_cast<std::uint16_t*>(to.mutable_data_ptr()), count, power_of_two(exponent));
  return true;
}

bool pack_int8(const float* from, std::size_t count, at::Tensor& to, float* residual) {
  auto* values = reinterpret_cast<std::int8_t*>(to.mutable_data_ptr());
  auto* scales = formats::scales_in(values, count);
  std::fill(values + count, reinterpret_cast<std::int8_t*>(scales), std::int8_t{0});
  return formats::quantise(from, residual, values, scales, count);
}

bool has_scales_of_finite_blocks(const at::Tensor& bytes, std::uint64_t elements) {
  const auto* scales = formats::scales_in(static_cast<const std::int8_t*>(bytes.const_data_ptr()), elements);
  return std::all_of(scales, scales + formats::blocks_of(elements), formats::is_of_finite_block);
}

/// Returns why a tensor of bytes can't be unpacked as `how` says; null if it can.
const char* why_not(const at::Tensor& bytes, const packing& how) {
  if (how.format > wire_format::int8) return "a format that is not known";
  if (!bytes.defined() || !bytes.device().is_cpu() || bytes.layout() != at::kStrided || bytes.scalar_type() != at::kByte ||
      bytes.dim() != 1 || !bytes.is_contiguous())
    return "elements that are no bytes";
  if (!shape_travels(how.sizes) || (!how.strides.empty() && how.strides.size() != how.sizes.size()))
    return "sizes that no tensor has";
  std::uint64_t elements = 1;
  for (const auto size : how.sizes) elements *= static_cast<std::uint64_t>(size);
  if (elements * sizeof(float) > max_payload_bytes || bytes.nbytes() != packed_bytes(how.format, elements))
    return "another number of bytes than its sizes say";
  if (how.exponent < -most_exponent || how.exponent > most_exponent) return "an exponent beyond float32's";
  if (how.format == wire_format::int8 && !has_scales_of_finite_blocks(bytes, elements))
    return "a scale that is negative, infinite or NaN, or too large for finite elements";
  return nullptr;
}

}  // namespace

std::uint64_t packed_bytes(wire_format format, std::uint64_t elements) {
  switch (format) {
    case wire_format::bfloat16:
    case wire_format::float16:
      return 2 * elements;
    case wire_format::int8:
      return formats::int8_bytes(elements);
    case wire_format::exact:
      break;
  }
  return sizeof(float) * elements;
}

bool is_packable(const at::Tensor& form) {
  return form.defined() && form.layout() == at::kStrided && form.device().is_cpu() && form.scalar_type() == at::kFloat &&
         form.numel() >= least_packed_elements;
}

std::optional<packed_tensor> pack(const at::Tensor& form, wire_format format, tensor_memory& memory, at::Tensor* residual) {
  if (format == wire_format::exact || !is_packable(form)) return std::nullopt;
  const auto count = static_cast<std::size_t>(form.numel());
  const auto* from = static_cast<const float*>(form.const_data_ptr());
  packed_tensor result{bytes_in(memory, packed_bytes(format, count)),
                       {.format = format, .exponent = 0, .sizes = form.sizes().vec(), .strides = {}}};
  if (!has_contiguous_strides(form)) result.how.strides = form.strides().vec();
  auto* const rest = residual == nullptr ? nullptr : residual->mutable_data_ptr<float>();
  const bool fits = format == wire_format::bfloat16  ? pack_bfloat16(from, count, result.bytes)
                    : format == wire_format::float16 ? pack_float16(from, count, result.bytes, result.how.exponent)
                                                     : pack_int8(from, count, result.bytes, rest);
  if (fits) return result;
  if (residual != nullptr) residual->reset();
  return std::nullopt;
}

at::Tensor unpack(const at::Tensor& bytes, const packing& how, tensor_memory& memory) {
  assert(why_not(bytes, how) == nullptr);
  std::size_t count = 1;
  for (const auto size : how.sizes) count *= static_cast<std::size_t>(size);
  auto result = tensor_over(memory.make(count * sizeof(float)), at::kFloat);
  if (how.strides.empty())
    result.unsafeGetTensorImpl()->set_sizes_contiguous(how.sizes);
  else
    result.unsafeGetTensorImpl()->set_sizes_and_strides(how.sizes, how.strides);
  auto* to = static_cast<float*>(result.mutable_data_ptr());
  const auto* words = static_cast<const std::uint16_t*>(bytes.const_data_ptr());
  const auto* values = static_cast<const std::int8_t*>(bytes.const_data_ptr());
  const auto* scales = formats::scales_in(values, count);
  const int half = how.exponent / 2;
  if (how.format == wire_format::bfloat16)
    formats::widen_bfloat16(words, to, count);
  else if (how.format == wire_format::float16)
    formats::widen_float16(words, to, count, power_of_two(-half), power_of_two(half - how.exponent));
  else
    formats::dequantise(values, scales, to, count);
  return result;
}

void pack_all(std::vector<at::Tensor>& forms, std::vector<packing>& packings, wire_format format, tensor_memory& memory,
              const residual_line& residuals) {
  if (format == wire_format::exact) return;
  const auto given = forms;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!is_packable(given[i])) continue;
    const auto twin = std::find_if(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const at::Tensor& other) { return other.is_same(given[i]); });
    const auto first = static_cast<std::size_t>(twin - given.begin());
    if (first < i) {
      if (packings.empty() || packings[first].format == wire_format::exact) continue;
      forms[i] = forms[first];
      packings[i] = packings[first];
      continue;
    }
    const bool feeds_back = format == wire_format::int8 && residuals.book != nullptr && residuals.call_key != 0;
    const residual_key key{residuals.peer, residuals.call_key, i};
    at::Tensor residual;
    if (feeds_back) residual = residuals.book->take(key, given[i]);
    if (feeds_back && !residual.defined()) residual = at::zeros({given[i].numel()}, at::kFloat);
    auto packed = pack(given[i], format, memory, feeds_back ? &residual : nullptr);
    if (!packed) continue;
    if (feeds_back) residuals.book->give(key, given[i], std::move(residual));
    packings.resize(forms.size());
    forms[i] = std::move(packed->bytes);
    packings[i] = std::move(packed->how);
  }
}

bool complete(packing& how, const at::Tensor& bytes, std::uint64_t elements, std::uint32_t largest) {
  constexpr std::uint32_t infinite_in_bfloat16 = 0x7f7f8000;  // after rounding
  if (how.format == wire_format::int8) return has_scales_of_finite_blocks(bytes, elements);
  if (how.format == wire_format::bfloat16) return largest < infinite_in_bfloat16;
  const auto exponent = float16_exponent(largest);
  how.exponent = exponent.value_or(0);
  return exponent.has_value();
}

namespace {

void fail(const std::string& why) { throw error(errc::malformed_message, why); }

}  // namespace

void check_packings(const std::vector<at::Tensor>& tensors, const std::vector<packing>& packings) {
  if (packings.empty()) return;
  if (packings.size() != tensors.size())
    fail("a message has " + std::to_string(tensors.size()) + " tensors, and says of " + std::to_string(packings.size()) +
         " how they were compressed");
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (packings[i].format != wire_format::exact)
      if (const auto* why = why_not(tensors[i], packings[i]))
        fail("tensor " + std::to_string(i) + " was compressed, and has " + why);
}

void unpack_all(std::vector<at::Tensor>& tensors, std::vector<packing>& packings, tensor_memory& memory) {
  if (packings.empty()) return;
  check_packings(tensors, packings);
  std::map<const void*, std::size_t> first;  // by bytes: the first tensor with these bytes
  const auto given = tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (packings[i].format == wire_format::exact) continue;
    const auto [known, is_new] = first.emplace(given[i].const_data_ptr(), i);
    if (is_new || given[i].nbytes() == 0) {
      tensors[i] = unpack(given[i], packings[i], memory);
      continue;
    }
    if (packings[known->second] != packings[i])
      fail("tensors " + std::to_string(known->second) + " and " + std::to_string(i) +
           " have the same compressed bytes, and are said to be different tensors");
    tensors[i] = twin_of(tensors[known->second]);
  }
  packings.clear();
}

std::uint64_t plain_bytes(const std::vector<at::Tensor>& tensors, const std::vector<packing>& packings) {
  auto result = payload_bytes(tensors);
  for (std::size_t i = 0; i < packings.size(); ++i) {
    if (packings[i].format == wire_format::exact) continue;
    std::uint64_t elements = 1;
    for (const auto size : packings[i].sizes) elements *= static_cast<std::uint64_t>(size);
    result += sizeof(float) * elements - payload_bytes(tensors[i]);
  }
  return result;
}

}  // namespace troupe
