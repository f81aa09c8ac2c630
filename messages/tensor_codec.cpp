// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/tensor_codec.hpp>

#include <algorithm>
#include <bit>

#include <ATen/EmptyTensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>
#include <caf/deserializer.hpp>
#include <caf/serializer.hpp>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/caf_error.hpp>

static_assert(std::endian::native == std::endian::little, "elements travel as little-endian bytes");

namespace troupe {

namespace {

constexpr std::uint32_t kind_undefined = 0;
constexpr std::uint32_t kind_strided = 1;
constexpr std::uint32_t dimensions_mask = 0xffff;
constexpr std::uint32_t strides_flag = 0x10000;

at::IntArrayRef dimensions(const google::protobuf::RepeatedField<std::uint64_t>& from, int start, std::size_t count) {
  // the signed type may alias; who reads them checks the sign
  return {reinterpret_cast<const std::int64_t*>(from.data()) + start, count};
}

bool has_contiguous_strides(const at::Tensor& tensor) {
  std::int64_t expected = 1;
  auto sizes = tensor.sizes();
  auto strides = tensor.strides();
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (strides[d] != expected) {
      return false;
    }
    expected *= std::max<std::int64_t>(sizes[d], 1);
  }
  return true;
}

bool strides_travel(at::IntArrayRef strides) {
  return std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s >= 0 && s <= max_stride; });
}

// True if the elements lie side by side, each once, in some order of the dimensions.
bool is_dense(at::IntArrayRef sizes, at::IntArrayRef strides) {
  c10::SmallVector<std::pair<std::int64_t, std::int64_t>, 8> order;  // stride, size
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) {
      return true;
    }
    if (sizes[d] != 1) {
      order.emplace_back(strides[d], sizes[d]);
    }
  }
  std::sort(order.begin(), order.end());
  std::int64_t expected = 1;
  for (const auto& [stride, size] : order) {
    if (stride != expected) {
      return false;
    }
    expected *= size;  // at most the number of elements, which did not overflow
  }
  return true;
}

// Copying moves bytes, whatever they mean, so any dtype of that size will do: not every one can copy itself.
at::ScalarType same_size(const at::Tensor& tensor) {
  switch (tensor.element_size()) {
    case 1:
      return at::ScalarType::Byte;
    case 2:
      return at::ScalarType::Short;
    case 4:
      return at::ScalarType::Int;
    case 8:
      return at::ScalarType::Long;
    default:
      return at::ScalarType::ComplexDouble;
  }
}

// Walks the parallel arrays of a header. Each step yields one defined tensor.
struct cursor {
  int tensor = 0;  // index into dtypes, shapes, payloads
  int size = 0;    // into sizes
  int stride = 0;  // into strides
};

std::string at_tensor(int index, const std::string& text) { return "tensor " + std::to_string(index) + " " + text; }

// Checks one defined tensor and moves on. `index` counts all tensors, for the text.
std::string check_one(const wire::Tensors& header, int index, cursor& at, std::uint64_t& bytes) {
  auto dtype = dtype_of(header.dtypes(at.tensor));
  if (!dtype) {
    return at_tensor(index, "has dtype number " + std::to_string(header.dtypes(at.tensor)) + ", which is not known");
  }
  std::uint32_t shape = header.shapes(at.tensor);
  auto ndim = static_cast<int>(shape & dimensions_mask);
  bool strided = (shape & strides_flag) != 0;
  if (static_cast<std::size_t>(ndim) > max_tensor_dimensions || (shape & ~(dimensions_mask | strides_flag)) != 0 ||
      ndim > header.sizes_size() - at.size || (strided && ndim > header.strides_size() - at.stride)) {
    return at_tensor(index, "has more dimensions than the header describes");
  }
  auto sizes = dimensions(header.sizes(), at.size, static_cast<std::size_t>(ndim));
  if (!shape_travels(sizes)) {
    return at_tensor(index, "has negative sizes, or more elements than a tensor can have");
  }
  bytes = c10::elementSize(*dtype);
  for (std::int64_t size : sizes) {
    bytes *= static_cast<std::uint64_t>(size);  // at most 2^59 elements of at most 16 bytes
  }
  if (bytes != header.payloads(at.tensor)) {
    return at_tensor(index, "has elements of " + std::to_string(bytes) + " bytes by its shape, " +
                              std::to_string(header.payloads(at.tensor)) + " by the header");
  }
  if (strided) {
    auto strides = dimensions(header.strides(), at.stride, static_cast<std::size_t>(ndim));
    if (!strides_travel(strides) || !is_dense(sizes, strides)) {
      return at_tensor(index, "has strides that leave gaps or overlap");
    }
    at.stride += ndim;
  }
  at.size += ndim;
  ++at.tensor;
  return {};
}

// Reading a bool that is neither 0 nor 1 is undefined behaviour in every kernel.
bool holds_only_bools(const at::Tensor& tensor) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  unsigned char seen = 0;
  for (std::size_t i = 0, n = tensor.nbytes(); i < n; ++i) {
    seen |= bytes[i];
  }
  return seen <= 1;
}

}  // namespace

at::Tensor travelling_form(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return tensor;
  }
  bool lazy = tensor.is_conj() || tensor.is_neg() || tensor._is_zerotensor();
  if (!lazy && tensor.is_non_overlapping_and_dense() && strides_travel(tensor.strides())) {
    return tensor;
  }
  at::NoGradGuard no_grad;
  if (tensor._is_zerotensor()) {
    return at::zeros(tensor.sizes(), tensor.options());
  }
  if (lazy) {
    // resolving copies, and keeps the strides of a dense tensor
    return travelling_form(tensor.resolve_conj().resolve_neg());
  }
  return tensor.detach().view(same_size(tensor)).clone(at::MemoryFormat::Contiguous).view(tensor.scalar_type());
}

std::uint64_t describe_tensors(const std::vector<at::Tensor>& tensors, wire::Tensors& to, travelling_tensors& forms) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) {
      to.add_kinds(kind_undefined);
      continue;
    }
    check_can_travel(tensors[i], "tensor " + std::to_string(i));
    const at::Tensor& tensor = forms.emplace_back(travelling_form(tensors[i]));
    bool strided = !has_contiguous_strides(tensor);
    to.add_kinds(kind_strided);
    to.add_dtypes(*wire_number(tensor.scalar_type()));
    to.add_shapes(static_cast<std::uint32_t>(tensor.dim()) | (strided ? strides_flag : 0));
    for (std::int64_t size : tensor.sizes()) {
      to.add_sizes(static_cast<std::uint64_t>(size));
    }
    if (strided) {
      for (std::int64_t stride : tensor.strides()) {
        to.add_strides(static_cast<std::uint64_t>(stride));
      }
    }
    to.add_payloads(tensor.nbytes());
    total += tensor.nbytes();
  }
  return total;
}

std::string check_tensors(const wire::Tensors& header, std::uint64_t available, std::uint64_t& claimed) {
  claimed = 0;
  int defined = 0;
  for (int i = 0; i < header.kinds_size(); ++i) {
    if (header.kinds(i) > kind_strided) {
      return at_tensor(
        i, "is of kind " + std::to_string(header.kinds(i)) + ", which this version does not know; update this node");
    }
    defined += header.kinds(i) == kind_strided ? 1 : 0;
  }
  if (header.dtypes_size() != defined || header.shapes_size() != defined || header.payloads_size() != defined) {
    return "the header speaks of " + std::to_string(defined) + " defined tensors, but has " +
           std::to_string(header.dtypes_size()) + " dtypes, " + std::to_string(header.shapes_size()) + " shapes and " +
           std::to_string(header.payloads_size()) + " payloads";
  }
  cursor at;
  for (int i = 0; i < header.kinds_size(); ++i) {
    std::uint64_t bytes = 0;
    if (header.kinds(i) == kind_undefined) {
      continue;
    }
    if (std::string bad = check_one(header, i, at, bytes); !bad.empty()) {
      return bad;
    }
    if (bytes > available - claimed) {
      return at_tensor(
        i, "has " + std::to_string(bytes) + " bytes, the message has only " + std::to_string(available - claimed) + " left");
    }
    claimed += bytes;
  }
  if (at.size != header.sizes_size() || at.stride != header.strides_size()) {
    return "the header has more sizes or strides than its tensors";
  }
  return {};
}

caf::error read_tensors(const wire::Tensors& header, caf::deserializer& source, std::vector<at::Tensor>& to) {
  to.clear();
  to.reserve(static_cast<std::size_t>(header.kinds_size()));
  cursor at;
  for (int i = 0; i < header.kinds_size(); ++i) {
    if (header.kinds(i) == kind_undefined) {
      to.emplace_back();
      continue;
    }
    auto dtype = *dtype_of(header.dtypes(at.tensor));
    std::uint32_t shape = header.shapes(at.tensor++);
    auto ndim = static_cast<int>(shape & dimensions_mask);
    auto sizes = dimensions(header.sizes(), at.size, static_cast<std::size_t>(ndim));
    at.size += ndim;
    at::Tensor tensor;
    if ((shape & strides_flag) != 0) {
      auto strides = dimensions(header.strides(), at.stride, static_cast<std::size_t>(ndim));
      at.stride += ndim;
      tensor = at::detail::empty_strided_cpu(sizes, strides, dtype);
    } else {
      tensor = at::detail::empty_cpu(sizes, dtype);
    }
    if (tensor.nbytes() != 0) {
      if (auto failed = source.apply_raw(tensor.nbytes(), tensor.mutable_data_ptr())) {
        return failed;
      }
    }
    if (dtype == at::ScalarType::Bool && !holds_only_bools(tensor)) {
      return make_error(errc::malformed_message, at_tensor(i, "of bool holds bytes other than 0 and 1"));
    }
    to.push_back(std::move(tensor));
  }
  return caf::none;
}

caf::error write_tensors(const travelling_tensors& forms, caf::serializer& sink) {
  for (const at::Tensor& tensor : forms) {
    if (tensor.nbytes() != 0) {
      // the serializer takes a pointer to non-const, but only reads
      if (auto failed = sink.apply_raw(tensor.nbytes(), const_cast<void*>(tensor.const_data_ptr()))) {
        return failed;
      }
    }
  }
  return caf::none;
}

}  // namespace troupe
