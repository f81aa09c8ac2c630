// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/tensor_rules.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/ops/_indices.h>
#include <ATen/ops/_values.h>
#include <c10/core/ScalarType.h>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe {

namespace {

// The index in this table is the number on the wire: append only.
constexpr std::array dtypes = {
  at::ScalarType::Bool,
  at::ScalarType::Byte,
  at::ScalarType::Char,
  at::ScalarType::Short,
  at::ScalarType::Int,
  at::ScalarType::Long,
  at::ScalarType::UInt16,
  at::ScalarType::UInt32,
  at::ScalarType::UInt64,
  at::ScalarType::Half,
  at::ScalarType::BFloat16,
  at::ScalarType::Float,
  at::ScalarType::Double,
  at::ScalarType::ComplexHalf,
  at::ScalarType::ComplexFloat,
  at::ScalarType::ComplexDouble,
  at::ScalarType::Float8_e5m2,
  at::ScalarType::Float8_e4m3fn,
  at::ScalarType::Float8_e5m2fnuz,
  at::ScalarType::Float8_e4m3fnuz,
  at::ScalarType::Float8_e8m0fnu,
  at::ScalarType::Float4_e2m1fn_x2,
};

constexpr std::size_t dtype_count = static_cast<std::size_t>(at::ScalarType::NumOptions);

constexpr auto numbers = [] {
  std::array<std::int16_t, dtype_count> table{};
  table.fill(-1);
  for (std::size_t i = 0; i < dtypes.size(); ++i) table[static_cast<std::size_t>(dtypes[i])] = static_cast<std::int16_t>(i);
  return table;
}();

// The index in this table is the number of the kind of device on the wire: append only.
constexpr std::array device_types = {
  c10::DeviceType::CPU, c10::DeviceType::CUDA, c10::DeviceType::PrivateUse1,
  c10::DeviceType::HIP, c10::DeviceType::XPU,  c10::DeviceType::MPS,
};

std::string layout_name(at::Layout layout) {
  classic_ostringstream text;
  text << layout;
  return text.str();
}

// Returns how many bytes lie between the start of the storage and the end of the last element of a strided tensor.
std::uint64_t bytes_spanned(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  auto last = static_cast<std::uint64_t>(tensor.storage_offset());
  for (std::int64_t d = 0; d < tensor.dim(); ++d)
    last += static_cast<std::uint64_t>(tensor.size(d) - 1) * static_cast<std::uint64_t>(tensor.stride(d));
  return (last + 1) * tensor.element_size();
}

}  // namespace

std::uint64_t payload_bytes(const at::Tensor& tensor) {
  if (!tensor.defined()) return 0;
  return tensor.is_sparse() ? tensor._indices().nbytes() + tensor._values().nbytes() : tensor.nbytes();
}

std::uint64_t payload_bytes(const std::vector<at::Tensor>& tensors) {
  std::uint64_t result = 0;
  for (const auto& each : tensors) result += payload_bytes(each);
  return result;
}

namespace {

std::string refusal(const at::Tensor& tensor, bool offered = false);

// Returns why a sparse tensor can't travel; empty if it can. Its indices and its values travel.
std::string refusal_of_sparse(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu()) return "is on device " + tensor.device().str() + "; send its cpu()";
  if (static_cast<std::size_t>(tensor.dim()) > max_tensor_dimensions || !shape_travels(tensor.sizes()))
    return "has more dimensions, or a greater product of sizes, than travels; reshape it";
  if (payload_bytes(tensor) > max_payload_bytes) {
    return "has " + std::to_string(payload_bytes(tensor)) + " bytes, at most " + std::to_string(max_payload_bytes) +
           " travel in one message; send it in parts";
  }
  return refusal(tensor._values());
}

std::string refusal(const at::Tensor& tensor, bool offered) {
  if (tensor.is_nested()) return "is nested; send its parts (unbind)";
  if (tensor.is_quantized()) return "is quantised; send its dequantize()";
  if (tensor.is_sparse()) return refusal_of_sparse(tensor);
  if (tensor.layout() != at::kStrided) return "has layout " + layout_name(tensor.layout()) + "; send its to_dense()";
  if (!tensor.device().is_cpu() && !offered) return "is on device " + tensor.device().str() + "; send its cpu()";
  if (at::isTensorSubclassLike(tensor) || tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides())
    return "is a wrapper or subclass without elements of its own; send the tensor in it";
  if (!wire_number(tensor.scalar_type())) return "has a dtype that does not travel; convert it with to(dtype)";
  if (static_cast<std::size_t>(tensor.dim()) > max_tensor_dimensions) {
    return "has " + std::to_string(tensor.dim()) + " dimensions, at most " + std::to_string(max_tensor_dimensions) +
           " travel; reshape it";
  }
  if (!shape_travels(tensor.sizes())) return "has sizes whose product overflows; reshape it";
  if (!tensor._is_zerotensor() && (!tensor.has_storage() || bytes_spanned(tensor) > tensor.storage().nbytes()))
    return "has less storage than its shape says; it was resized or freed";
  if (tensor.nbytes() > max_payload_bytes) {
    return "has " + std::to_string(tensor.nbytes()) + " bytes, at most " + std::to_string(max_payload_bytes) +
           " travel in one message; send it in parts";
  }
  return {};
}

}  // namespace

bool has_contiguous_strides(const at::Tensor& tensor) {
  std::int64_t expected = 1;
  auto sizes = tensor.sizes();
  auto strides = tensor.strides();
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (strides[d] != expected) return false;
    expected *= std::max<std::int64_t>(sizes[d], 1);
  }
  return true;
}

bool shape_travels(at::IntArrayRef sizes) noexcept {
  std::int64_t product = 1;
  for (std::int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(product, std::max<std::int64_t>(size, 1), &product)) return false;
  return product < std::int64_t{1} << 59;
}

std::optional<std::uint32_t> wire_number(at::ScalarType dtype) noexcept {
  auto index = static_cast<std::size_t>(dtype);
  if (index >= dtype_count || numbers[index] < 0) return std::nullopt;
  return static_cast<std::uint32_t>(numbers[index]);
}

std::optional<at::ScalarType> dtype_of(std::uint32_t wire_number) noexcept {
  if (wire_number >= dtypes.size()) return std::nullopt;
  return dtypes[wire_number];
}

std::optional<std::uint32_t> wire_number(c10::Device device) noexcept {
  const auto found = std::find(device_types.begin(), device_types.end(), device.type());
  if (found == device_types.end()) return std::nullopt;
  const auto kind = static_cast<std::uint32_t>(found - device_types.begin());
  return kind << 16 | static_cast<std::uint32_t>(device.has_index() ? device.index() : 0);
}

std::optional<c10::Device> wire_device(std::uint32_t number) noexcept {
  const std::uint32_t kind = number >> 16;
  const std::uint32_t index = number & 0xffff;
  if (kind >= device_types.size() || index > static_cast<std::uint32_t>(std::numeric_limits<c10::DeviceIndex>::max()) ||
      (kind == 0 && index != 0))
    return std::nullopt;
  return kind == 0 ? c10::Device(c10::DeviceType::CPU) : c10::Device(device_types[kind], static_cast<c10::DeviceIndex>(index));
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::string text = c10::toString(tensor.scalar_type());
  if (tensor.is_nested() || tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return text + "[?]";
  text += '[';
  for (std::int64_t d = 0; d < tensor.dim(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(tensor.size(d));
  return text + ']';
}

std::string why_it_cannot_travel(const at::Tensor& tensor, bool offered) {
  if (!tensor.defined()) return {};
  std::string why = refusal(tensor, offered);
  return why.empty() ? why : "the tensor " + describe(tensor) + " can't travel between nodes: it " + why;
}

void check_can_travel(const at::Tensor& tensor, std::string_view what, bool offered) {
  std::string why = why_it_cannot_travel(tensor, offered);
  if (!why.empty()) throw error(errc::unsupported_tensor, std::string(what) + ": " + why);
}

void check_sum_travels(const std::vector<at::Tensor>& tensors, std::string_view what) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    const bool counts = tensor.defined() && !tensor.is_nested() && (tensor.is_sparse() || tensor.layout() == at::kStrided);
    bytes += counts ? payload_bytes(tensor) : 0;  // check_can_travel() refuses all other tensors
  }
  if (bytes > max_payload_bytes) {
    throw error(errc::unsupported_tensor, std::string(what) + ": the tensors have " + std::to_string(bytes) +
                                            " bytes together, at most " + std::to_string(max_payload_bytes) +
                                            " travel in one message; send them in several");
  }
}

void check_count_travels(const std::vector<at::Tensor>& tensors, std::string_view what) {
  if (tensors.size() > max_tensors)
    throw error(errc::unsupported_tensor, std::string(what) + ": it has " + std::to_string(tensors.size()) +
                                            " tensors, at most " + std::to_string(max_tensors) +
                                            " travel in one message; send them in several");
  std::size_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    constexpr std::size_t of_tensor = 80;     // bytes: more than the header takes for two components without their sizes
    constexpr std::size_t of_dimension = 24;  // the size, the stride, and the whole size of a gradient
    if (tensor.defined()) bytes += of_tensor + of_dimension * static_cast<std::size_t>(tensor.dim());
  }
  if (bytes > max_shape_bytes)
    throw error(errc::unsupported_tensor, std::string(what) + ": the shapes of its tensors take " + std::to_string(bytes) +
                                            " bytes, at most " + std::to_string(max_shape_bytes) +
                                            " travel in one message; send them in several");
}

void check_can_travel(const std::vector<at::Tensor>& tensors, std::string_view what) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::string why = why_it_cannot_travel(tensors[i]);
    if (!why.empty()) throw error(errc::unsupported_tensor, std::string(what) + '[' + std::to_string(i) + "]: " + why);
  }
  check_count_travels(tensors, what);
  check_sum_travels(tensors, what);
}

}  // namespace troupe
