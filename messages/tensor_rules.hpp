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

/// Which tensors travel: strided and sparse (COO) ones on the CPU, of every dtype that has a size in bytes and is not
/// quantised. Strided ones of an accelerator are copied to the CPU first (devices/staging.hpp); beside them travels which
/// device they were on.
namespace troupe {

inline constexpr std::size_t max_tensor_dimensions = 1024;
inline constexpr std::int64_t max_stride = std::int64_t{1} << 40;

/// Bytes of the elements that travel: of a sparse tensor those of indices and values, of an undefined one none.
std::uint64_t payload_bytes(const at::Tensor& tensor);

/// Why a tensor can't travel, with its dtype and shape and what to do; empty if it can. An undefined tensor can.
std::string why_it_cannot_travel(const at::Tensor& tensor);

/// Throws troupe::error(unsupported_tensor), the text beginning with `what`, for a tensor that can't travel.
/// Call it before sending: CAF drops an error met while it writes a message.
void check_can_travel(const at::Tensor& tensor, std::string_view what);

/// Throws troupe::error(unsupported_tensor), the text beginning with `what`, if the tensors, wherever they are, have more bytes
/// together than one struct may have.
void check_sum_travels(const std::vector<at::Tensor>& tensors, std::string_view what);

/// check_can_travel for all, each named `what[index]`, and check_sum_travels.
void check_can_travel(const std::vector<at::Tensor>& tensors, std::string_view what);

/// False for negative sizes, and for those whose product (a 0 counted as 1) has no place in 59 bits.
bool shape_travels(at::IntArrayRef sizes) noexcept;

/// Number of a dtype on the wire. None: it does not travel.
std::optional<std::uint32_t> wire_number(at::ScalarType dtype) noexcept;

/// The dtype of such a number. None: this version does not know it.
std::optional<at::ScalarType> dtype_of(std::uint32_t wire_number) noexcept;

/// Number of a device on the wire: its kind in the high 16 bits, its index in the low ones (0 where it has none). None: a
/// tensor on it does not travel.
std::optional<std::uint32_t> wire_number(c10::Device device) noexcept;

/// The device of such a number. None: of a kind that this version does not know, or more than there can be.
std::optional<c10::Device> wire_device(std::uint32_t number) noexcept;

/// Like "float[2, 3]" or "undefined".
std::string describe(const at::Tensor& tensor);

}  // namespace troupe
