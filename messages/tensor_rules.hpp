// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <troupe/messages/message_size.hpp>

/// Which tensors travel: strided and sparse (COO) tensors on the CPU, of every dtype that has a size in bytes and is not
/// quantised. Strided tensors of an accelerator are copied to the CPU first, or are offered (devices/staging.hpp); the number
/// of their device travels with them.
namespace troupe {

inline constexpr std::size_t max_tensor_dimensions = 1024;
inline constexpr std::int64_t max_stride = std::int64_t{1} << 40;

/// Returns the bytes of the elements that travel: for a sparse tensor, the bytes of its indices and values; for an undefined
/// tensor, 0.
std::uint64_t payload_bytes(const at::Tensor& tensor);
/// Returns the sum of payload_bytes() of all tensors.
std::uint64_t payload_bytes(const std::vector<at::Tensor>& tensors);

/// Returns why the tensor can't travel, with its dtype, its shape and what to do; empty if the tensor can travel. An undefined
/// tensor can travel. `offered`: a strided tensor of a device can, because its elements are offered (tensor_offer).
std::string why_it_cannot_travel(const at::Tensor& tensor, bool offered = false);

/// Throws troupe::error(unsupported_tensor) if the tensor can't travel. The text begins with `what`. To be called before
/// sending, because CAF drops an error that occurs while it writes a message.
void check_can_travel(const at::Tensor& tensor, std::string_view what, bool offered = false);

/// Throws troupe::error(unsupported_tensor) if the tensors, on whatever device they are, have more bytes together than one
/// struct may have. The text begins with `what`.
void check_sum_travels(const std::vector<at::Tensor>& tensors, std::string_view what);

/// Throws troupe::error(unsupported_tensor) if one message may not have so many tensors, or if their shapes are too large for
/// its header (message_size.hpp). The text begins with `what`.
void check_count_travels(const std::vector<at::Tensor>& tensors, std::string_view what);

/// Calls check_can_travel for each tensor, named `what[index]`, and check_count_travels and check_sum_travels for all tensors.
void check_can_travel(const std::vector<at::Tensor>& tensors, std::string_view what);

/// False if a size is negative, or if the product of the sizes (0 counted as 1) needs more than 59 bits.
bool shape_travels(at::IntArrayRef sizes) noexcept;

/// Whether the strides are those of a contiguous tensor, also where a size is 0 or 1.
bool has_contiguous_strides(const at::Tensor& tensor);

/// Returns the number of a dtype on the wire; none if the dtype does not travel.
std::optional<std::uint32_t> wire_number(at::ScalarType dtype) noexcept;

/// Returns the dtype of a number on the wire; none if this version does not know the number.
std::optional<at::ScalarType> dtype_of(std::uint32_t wire_number) noexcept;

/// Returns the number of a device on the wire: its kind in the high 16 bits, its index in the low 16 bits (0 if it has none).
/// None if tensors on the device do not travel.
std::optional<std::uint32_t> wire_number(c10::Device device) noexcept;

/// Returns the device of a number on the wire. None if this version does not know the kind, or if the index is higher than any
/// device can have.
std::optional<c10::Device> wire_device(std::uint32_t number) noexcept;

/// Returns the tensor's dtype and shape as text, like "Float[2, 3]", or "undefined".
std::string describe(const at::Tensor& tensor);

}  // namespace troupe
