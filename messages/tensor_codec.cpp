// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/tensor_codec.hpp>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_indices.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_values.h>
#include <ATen/ops/is_coalesced.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>
#include <caf/deserializer.hpp>
#include <caf/serializer.hpp>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/packed_tensors.hpp>
#include <troupe/messages/tensors_over_storages.hpp>

static_assert(std::endian::native == std::endian::little, "elements travel as little-endian bytes");

namespace troupe {

namespace {

constexpr std::uint32_t kind_undefined = 0;
constexpr std::uint32_t kind_strided = 1;
constexpr std::uint32_t kind_sparse = 2;
constexpr std::uint32_t kind_packed = 3;
constexpr int components_of_kind[] = {0, 1, 2, 1};
constexpr std::uint32_t dimensions_mask = 0xffff;
constexpr std::uint32_t strides_flag = 0x10000;
constexpr std::uint32_t format_mask = 0xff;
constexpr std::int32_t exponent_offset = 1 << 15;

at::IntArrayRef dimensions(const google::protobuf::RepeatedField<std::uint64_t>& from, int start, std::size_t count) {
  // the signed type may alias the unsigned one; the callers check the sign
  return {reinterpret_cast<const std::int64_t*>(from.data()) + start, count};
}

bool strides_travel(at::IntArrayRef strides) {
  return std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s >= 0 && s <= max_stride; });
}

// True if the elements lie in memory without gaps and overlaps, in some order of the dimensions.
bool is_dense(at::IntArrayRef sizes, at::IntArrayRef strides) {
  c10::SmallVector<std::pair<std::int64_t, std::int64_t>, 8> order;  // stride, size
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1) order.emplace_back(strides[d], sizes[d]);
  }
  std::sort(order.begin(), order.end());
  std::int64_t expected = 1;
  for (const auto& [stride, size] : order) {
    if (stride != expected) return false;
    expected *= size;  // at most the number of elements, which did not overflow
  }
  return true;
}

// Returns a dtype of the same element size. A copy uses it in place of the tensor's dtype, because not every dtype has a kernel
// that copies.
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

// The position in the parallel arrays of a header. Each step moves over one strided component.
struct cursor {
  int component = 0;        // index into dtypes, shapes, payloads
  int size = 0;             // into sizes
  int stride = 0;           // into strides
  int sparse = 0;           // into coalesced
  int sparse_size = 0;      // into sparse_sizes
  int packed = 0;           // into packings
  std::uint64_t plain = 0;  // when checking: bytes of the packed tensors without compression
  // when reading: the elements that came ahead of the message, with the number of their transfer
  c10::SmallVector<std::pair<std::uint64_t, c10::Storage>, 2> came;
};

// Returns the transfer that brought the elements of a component; 0 if the elements follow the header.
std::uint64_t transfer_of(const wire::Tensors& header, int component) {
  return component < header.ahead_size() ? header.ahead(component) : 0;
}

using sizes_of_tensor = c10::SmallVector<std::int64_t, 8>;

std::string at_tensor(int index, const std::string& text) { return "tensor " + std::to_string(index) + " " + text; }

std::uint32_t number_of(const packing& x) {
  return static_cast<std::uint32_t>(x.format) | static_cast<std::uint32_t>(x.exponent + exponent_offset) << 8;
}

/// Returns none for a format that this version does not know, and for an exponent that no node sends.
std::optional<packing> packing_of(std::uint32_t number) {
  const auto format = wire_format_of(number & format_mask);
  const auto exponent = static_cast<std::int32_t>(number >> 8) - exponent_offset;
  if (!format || *format == wire_format::exact || exponent < -most_exponent || exponent > most_exponent) return std::nullopt;
  return packing{.format = *format, .exponent = exponent, .sizes = {}, .strides = {}};
}

// Checks one strided component and moves `at` past that component. `bytes`: the bytes of the component that follow the header.
// `index`: the tensor's index, for the error text. `format`: the format in which the component was packed.
std::string check_component(const wire::Tensors& header, int index, cursor& at, std::uint64_t& bytes,
                            wire_format format = wire_format::exact) {
  auto dtype = dtype_of(header.dtypes(at.component));
  if (!dtype)
    return at_tensor(index, "has dtype number " + std::to_string(header.dtypes(at.component)) + ", which is not known");
  std::uint32_t shape = header.shapes(at.component);
  auto ndim = static_cast<int>(shape & dimensions_mask);
  bool strided = (shape & strides_flag) != 0;
  if (static_cast<std::size_t>(ndim) > max_tensor_dimensions || (shape & ~(dimensions_mask | strides_flag)) != 0 ||
      ndim > header.sizes_size() - at.size || (strided && ndim > header.strides_size() - at.stride))
    return at_tensor(index, "has more dimensions than the header describes");
  auto sizes = dimensions(header.sizes(), at.size, static_cast<std::size_t>(ndim));
  if (!shape_travels(sizes)) return at_tensor(index, "has negative sizes, or more elements than a tensor can have");
  bytes = c10::elementSize(*dtype);
  for (std::int64_t size : sizes) bytes *= static_cast<std::uint64_t>(size);  // at most 2^59 elements of at most 16 bytes
  if (format != wire_format::exact) {
    if (*dtype != at::ScalarType::Float) return at_tensor(index, "is compressed, but is not of float32");
    if (bytes > max_payload_bytes - at.plain)
      return at_tensor(index, "has more bytes without compression than the message may have left");
    at.plain += bytes;
    bytes = packed_bytes(format, bytes / sizeof(float));
  }
  if (bytes != header.payloads(at.component)) {
    return at_tensor(index, "has elements of " + std::to_string(bytes) + " bytes by its shape, " +
                              std::to_string(header.payloads(at.component)) + " by the header");
  }
  if (strided) {
    auto strides = dimensions(header.strides(), at.stride, static_cast<std::size_t>(ndim));
    if (!strides_travel(strides) || !is_dense(sizes, strides))
      return at_tensor(index, "has strides that leave gaps or overlap");
    at.stride += ndim;
  }
  at.size += ndim;
  if (transfer_of(header, at.component++) != 0) bytes = 0;
  return {};
}

// Computes the shape of a sparse tensor from its sparse sizes and the sizes of its values.
sizes_of_tensor sparse_shape(at::IntArrayRef sparse, at::IntArrayRef values) {
  sizes_of_tensor result(sparse.begin(), sparse.end());
  result.append(values.begin() + 1, values.end());
  return result;
}

// Checks the two components of a sparse tensor and moves `at` past both components.
std::string check_sparse(const wire::Tensors& header, int index, cursor& at, std::uint64_t& bytes) {
  const cursor first = at;
  std::uint64_t more = 0;
  if (std::string bad = check_component(header, index, at, bytes); !bad.empty()) return bad;
  const cursor second = at;
  if (std::string bad = check_component(header, index, at, more); !bad.empty()) return bad;
  bytes += more;
  auto indices = dimensions(header.sizes(), first.size, static_cast<std::size_t>(second.size - first.size));
  auto values = dimensions(header.sizes(), second.size, static_cast<std::size_t>(at.size - second.size));
  if (*dtype_of(header.dtypes(first.component)) != at::kLong || indices.size() != 2 || values.empty() ||
      values[0] != indices[1])
    return at_tensor(index, "is sparse, but its indices are not one int64 for each dimension and value");
  if (indices[0] > header.sparse_sizes_size() - at.sparse_size || at.sparse == header.coalesced_size())
    return at_tensor(index, "is sparse, and has more dimensions than the header describes");
  auto sparse = dimensions(header.sparse_sizes(), at.sparse_size, static_cast<std::size_t>(indices[0]));
  if (sparse.size() + values.size() - 1 > max_tensor_dimensions || !shape_travels(sparse_shape(sparse, values)))
    return at_tensor(index, "has negative sizes, or more elements than a tensor can have");
  at.sparse_size += static_cast<int>(indices[0]);
  ++at.sparse;
  return {};
}

std::string check_packed(const wire::Tensors& header, int index, cursor& at, std::uint64_t& bytes) {
  if (at.packed == header.packings_size()) return at_tensor(index, "is compressed, and the header does not say how");
  const auto how = packing_of(header.packings(at.packed++));
  if (!how) return at_tensor(index, "is in a wire format that this version does not know; update this node");
  return check_component(header, index, at, bytes, how->format);
}

std::string check_tensor(const wire::Tensors& header, int index, cursor& at, std::uint64_t& bytes) {
  switch (header.kinds(index)) {
    case kind_sparse:
      return check_sparse(header, index, at, bytes);
    case kind_packed:
      return check_packed(header, index, at, bytes);
    default:
      return check_component(header, index, at, bytes);
  }
}

// True if the columns of `indices` lie within the sizes and, if `ascending`, ascend.
bool indices_fit(const at::Tensor& indices, at::IntArrayRef sizes, bool ascending) {
  const auto at = indices.accessor<std::int64_t, 2>();
  for (std::int64_t i = 0; i < at.size(1); ++i) {
    bool above = i == 0 || !ascending;
    for (std::int64_t d = 0; d < at.size(0); ++d) {
      const std::int64_t x = at[d][i];
      if (x < 0 || x >= sizes[static_cast<std::size_t>(d)] || (!above && x < at[d][i - 1])) return false;
      above = above || x > at[d][i - 1];
    }
    if (!above) return false;
  }
  return true;
}

// True if every byte is 0 or 1. A bool with any other byte would be undefined behaviour in every kernel.
bool holds_only_bools(const at::Tensor& tensor) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  unsigned char seen = 0;
  for (std::size_t i = 0, n = tensor.nbytes(); i < n; ++i) seen |= bytes[i];
  return seen <= 1;
}

// Returns the elements that came ahead of the message, as a tensor without a shape; undefined if the elements did not come. The
// elements may be on a device, or in memory for one, and then no second tensor gets them.
at::Tensor take_ahead(const wire::Tensors& header, caf::deserializer& source, cursor& at, at::ScalarType dtype) {
  const auto transfer = header.ahead(at.component);
  const auto bytes = header.payloads(at.component);
  c10::Storage storage;
  for (const auto& [number, elements] : at.came)
    if (number == transfer && elements.nbytes() == bytes && can_have_twin(elements)) storage = twin_of(elements);
  if (!storage) {
    if (auto* arriving = arriving_at(source)) storage = arriving->take({header.ahead_from()}, transfer, bytes);
    if (storage) at.came.emplace_back(transfer, storage);
  }
  return storage ? tensor_over(std::move(storage), dtype) : at::Tensor{};
}

// Reads one strided component and moves `at` past that component.
caf::error read_component(const wire::Tensors& header, caf::deserializer& source, int index, cursor& at, at::Tensor& to) {
  auto dtype = *dtype_of(header.dtypes(at.component));
  const bool ahead = transfer_of(header, at.component) != 0;
  if (ahead) {
    to = take_ahead(header, source, at, dtype);
    if (!to.defined())
      return make_error(errc::malformed_message, at_tensor(index, "should have come ahead of the message, and did not"));
  }
  std::uint32_t shape = header.shapes(at.component++);
  auto ndim = static_cast<int>(shape & dimensions_mask);
  auto sizes = dimensions(header.sizes(), at.size, static_cast<std::size_t>(ndim));
  at.size += ndim;
  const bool strided = (shape & strides_flag) != 0;
  auto strides = dimensions(header.strides(), at.stride, static_cast<std::size_t>(strided ? ndim : 0));
  at.stride += static_cast<int>(strides.size());
  if (!ahead)
    to = strided ? at::detail::empty_strided_cpu(sizes, strides, dtype) : at::detail::empty_cpu(sizes, dtype);
  else if (strided)
    to.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  else
    to.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  if (!ahead && to.nbytes() != 0) {
    if (auto failed = source.apply_raw(to.nbytes(), to.mutable_data_ptr())) return failed;
  }
  if (dtype == at::ScalarType::Bool && !to.is_cpu())
    return make_error(errc::malformed_message, at_tensor(index, "of bool came from a device to a device"));
  if (dtype == at::ScalarType::Bool && !holds_only_bools(to))
    return make_error(errc::malformed_message, at_tensor(index, "of bool holds bytes other than 0 and 1"));
  return caf::none;
}

caf::error read_sparse(const wire::Tensors& header, caf::deserializer& source, int index, cursor& at, at::Tensor& to) {
  at::Tensor indices;
  at::Tensor values;
  if (auto failed = read_component(header, source, index, at, indices)) return failed;
  if (auto failed = read_component(header, source, index, at, values)) return failed;
  if (!indices.is_cpu() || !values.is_cpu())
    return make_error(errc::malformed_message, at_tensor(index, "is sparse, and came from a device to a device"));
  auto sparse = dimensions(header.sparse_sizes(), at.sparse_size, static_cast<std::size_t>(indices.size(0)));
  bool coalesced = header.coalesced(at.sparse++) != 0;
  at.sparse_size += static_cast<int>(sparse.size());
  if (!indices_fit(indices, sparse, coalesced)) {
    return make_error(errc::malformed_message,
                      at_tensor(index, "is sparse, and has indices outside its shape or out of order"));
  }
  to = at::_sparse_coo_tensor_unsafe(indices, values, sparse_shape(sparse, values.sizes()),
                                     values.options().layout(at::kSparse), coalesced);
  return caf::none;
}

// Reads the bytes of a packed tensor and moves `at` past its component.
caf::error read_packed(const wire::Tensors& header, caf::deserializer& source, int index, cursor& at, at::Tensor& to,
                       packing& how) {
  how = *packing_of(header.packings(at.packed++));
  const auto bytes = static_cast<std::int64_t>(header.payloads(at.component));
  if (transfer_of(header, at.component) == 0) {
    to = at::detail::empty_cpu({bytes}, at::kByte);
    if (bytes > 0)
      if (auto failed = source.apply_raw(static_cast<std::size_t>(bytes), to.mutable_data_ptr())) return failed;
  } else {
    to = take_ahead(header, source, at, at::kByte);
    if (!to.defined())
      return make_error(errc::malformed_message, at_tensor(index, "should have come ahead of the message, and did not"));
    if (!to.is_cpu())
      return make_error(errc::malformed_message, at_tensor(index, "is compressed, and came from a device to a device"));
    to.unsafeGetTensorImpl()->set_sizes_contiguous({bytes});
  }
  const std::uint32_t shape = header.shapes(at.component++);
  const auto ndim = shape & dimensions_mask;
  how.sizes = dimensions(header.sizes(), at.size, ndim).vec();
  at.size += static_cast<int>(ndim);
  if ((shape & strides_flag) == 0) return caf::none;
  how.strides = dimensions(header.strides(), at.stride, ndim).vec();
  at.stride += static_cast<int>(ndim);
  return caf::none;
}

// Describes a packed tensor in the header and returns the number of its bytes. `bytes`: the packed bytes. `how`: how the tensor
// was packed.
std::uint64_t describe_packed(const at::Tensor& bytes, const packing& how, wire::Tensors& to, travelling_tensors& forms) {
  forms.push_back(bytes);
  to.add_kinds(kind_packed);
  to.add_dtypes(*wire_number(at::kFloat));
  to.add_packings(number_of(how));
  to.add_shapes(static_cast<std::uint32_t>(how.sizes.size()) | (how.strides.empty() ? 0 : strides_flag));
  for (const auto size : how.sizes) to.add_sizes(static_cast<std::uint64_t>(size));
  for (const auto stride : how.strides) to.add_strides(static_cast<std::uint64_t>(stride));
  to.add_payloads(bytes.nbytes());
  return bytes.nbytes();
}

std::uint64_t describe_component(const at::Tensor& component, wire::Tensors& to, travelling_tensors& forms) {
  const at::Tensor& tensor = forms.emplace_back(travelling_form(component));
  bool strided = !has_contiguous_strides(tensor);
  to.add_dtypes(*wire_number(tensor.scalar_type()));
  to.add_shapes(static_cast<std::uint32_t>(tensor.dim()) | (strided ? strides_flag : 0));
  for (std::int64_t size : tensor.sizes()) to.add_sizes(static_cast<std::uint64_t>(size));
  if (strided)
    for (std::int64_t stride : tensor.strides()) to.add_strides(static_cast<std::uint64_t>(stride));
  to.add_payloads(tensor.nbytes());
  return tensor.nbytes();
}

}  // namespace

at::Tensor travelling_form(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_sparse()) return tensor;
  bool lazy = tensor.is_conj() || tensor.is_neg() || tensor._is_zerotensor();
  if (!lazy && tensor.is_non_overlapping_and_dense() && strides_travel(tensor.strides())) return tensor;
  at::NoGradGuard no_grad;
  if (tensor._is_zerotensor()) return at::zeros(tensor.sizes(), tensor.options());
  if (lazy) {
    // resolving copies the tensor and keeps the strides of a dense one
    return travelling_form(tensor.resolve_conj().resolve_neg());
  }
  return tensor.detach().view(same_size(tensor)).clone(at::MemoryFormat::Contiguous).view(tensor.scalar_type());
}

std::vector<at::Tensor> travelling_forms(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> forms;
  forms.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    const auto seen = tensors.begin() + static_cast<std::ptrdiff_t>(forms.size());
    const auto twin = std::find_if(tensors.begin(), seen, [&](const at::Tensor& other) { return other.is_same(tensor); });
    if (twin != seen)
      forms.push_back(forms[static_cast<std::size_t>(twin - tensors.begin())]);
    else
      forms.push_back(tensor.defined() ? travelling_form(tensor.detach()) : tensor);
  }
  return forms;
}

std::uint64_t describe_tensors(const std::vector<at::Tensor>& tensors, wire::Tensors& to, travelling_tensors& forms,
                               const std::vector<packing>& packings) {
  std::uint64_t total = 0;
  if (!packings.empty() && packings.size() != tensors.size())
    throw error(errc::misuse, "a message has " + std::to_string(tensors.size()) + " tensors, but " +
                                std::to_string(packings.size()) + " entries that say how they were compressed");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) {
      to.add_kinds(kind_undefined);
      continue;
    }
    check_can_travel(tensors[i], "tensor " + std::to_string(i), true);
    if (!packings.empty() && packings[i].format != wire_format::exact) {
      total += describe_packed(tensors[i], packings[i], to, forms);
      continue;
    }
    if (!tensors[i].is_sparse()) {
      to.add_kinds(kind_strided);
      total += describe_component(tensors[i], to, forms);
      continue;
    }
    at::NoGradGuard no_grad;
    const at::Tensor tensor = tensors[i].detach();
    to.add_kinds(kind_sparse);
    total += describe_component(tensor._indices(), to, forms);
    total += describe_component(tensor._values(), to, forms);
    for (std::int64_t size : tensor.sizes().slice(0, static_cast<std::size_t>(tensor.sparse_dim())))
      to.add_sparse_sizes(static_cast<std::uint64_t>(size));
    to.add_coalesced(tensor.is_coalesced());
  }
  return total;
}

std::uint64_t leave_out(const sent_ahead& ahead, wire::Tensors& to, travelling_tensors& forms) {
  if (ahead.transfers.empty()) return 0;
  if (ahead.transfers.size() != forms.size()) {
    throw error(errc::misuse, "a message has " + std::to_string(forms.size()) + " components of tensors, but " +
                                std::to_string(ahead.transfers.size()) + " entries that say which components left ahead of it");
  }
  std::uint64_t bytes = 0;
  to.set_ahead_from(ahead.from.value);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    to.add_ahead(ahead.transfers[i]);
    if (ahead.transfers[i] != 0) bytes += std::exchange(forms[i], at::Tensor{}).nbytes();
  }
  return bytes;
}

at::Tensor bytes_of(const at::Tensor& form, std::uint64_t offset, std::uint64_t bytes) {
  at::Tensor result = tensor_over(form.storage(), at::kByte);
  auto* to = result.unsafeGetTensorImpl();
  to->set_storage_offset(form.storage_offset() * static_cast<std::int64_t>(form.element_size()) +
                         static_cast<std::int64_t>(offset));
  to->set_sizes_contiguous({static_cast<std::int64_t>(bytes)});
  return result;
}

std::string check_tensors(const wire::Tensors& header, std::uint64_t available, std::uint64_t& claimed) {
  claimed = 0;
  if (static_cast<std::size_t>(header.kinds_size()) > max_tensors)
    return "the message has " + std::to_string(header.kinds_size()) + " tensors, at most " + std::to_string(max_tensors) +
           " travel";
  int components = 0;
  for (int i = 0; i < header.kinds_size(); ++i) {
    if (header.kinds(i) > kind_packed) {
      return at_tensor(
        i, "is of kind " + std::to_string(header.kinds(i)) + ", which this version does not know; update this node");
    }
    components += components_of_kind[header.kinds(i)];
  }
  if (header.dtypes_size() != components || header.shapes_size() != components || header.payloads_size() != components) {
    return "the header speaks of " + std::to_string(components) + " defined tensors or their components, but has " +
           std::to_string(header.dtypes_size()) + " dtypes, " + std::to_string(header.shapes_size()) + " shapes and " +
           std::to_string(header.payloads_size()) + " payloads";
  }
  if (header.ahead_size() != 0 && header.ahead_size() != components) {
    return "the header speaks of " + std::to_string(components) + " defined tensors or their components, and says of " +
           std::to_string(header.ahead_size()) + " whether they came ahead of it";
  }
  cursor at;
  for (int i = 0; i < header.kinds_size(); ++i) {
    std::uint64_t bytes = 0;
    if (header.kinds(i) == kind_undefined) continue;
    if (std::string bad = check_tensor(header, i, at, bytes); !bad.empty()) return bad;
    if (bytes > available - claimed) {
      return at_tensor(
        i, "has " + std::to_string(bytes) + " bytes, the message has only " + std::to_string(available - claimed) + " left");
    }
    claimed += bytes;
  }
  if (at.size != header.sizes_size() || at.stride != header.strides_size() || at.sparse != header.coalesced_size() ||
      at.sparse_size != header.sparse_sizes_size())
    return "the header has more sizes or strides than its tensors";
  if (at.packed != header.packings_size()) return "the header has more wire formats than compressed tensors";
  return {};
}

static caf::error read_each(const wire::Tensors& header, caf::deserializer& source, std::vector<at::Tensor>& to,
                            std::vector<packing>& packings) {
  to.clear();
  packings.clear();
  if (header.packings_size() > 0) packings.resize(static_cast<std::size_t>(header.kinds_size()));
  to.reserve(static_cast<std::size_t>(header.kinds_size()));
  cursor at;
  for (int i = 0; i < header.kinds_size(); ++i) {
    at::Tensor& tensor = to.emplace_back();
    if (header.kinds(i) == kind_undefined) continue;
    if (header.kinds(i) == kind_packed) {
      if (auto failed = read_packed(header, source, i, at, tensor, packings[static_cast<std::size_t>(i)])) return failed;
      continue;
    }
    auto read = header.kinds(i) == kind_sparse ? read_sparse : read_component;
    if (auto failed = read(header, source, i, at, tensor)) return failed;
  }
  return caf::none;
}

caf::error read_tensors(const wire::Tensors& header, caf::deserializer& source, std::vector<at::Tensor>& to,
                        std::vector<packing>& packings) {
  auto failed = read_each(header, source, to, packings);
  auto* const arriving = failed ? arriving_at(source) : nullptr;
  if (arriving != nullptr)  // nobody takes those of its tensors that have come
    for (const auto transfer : header.ahead()) arriving->end({header.ahead_from()}, transfer);
  return failed;
}

caf::error write_tensors(const travelling_tensors& forms, caf::serializer& sink) {
  for (const at::Tensor& tensor : forms) {
    if (tensor.defined() && tensor.nbytes() != 0) {
      // apply_raw takes a pointer to non-const, but the serializer only reads
      if (auto failed = sink.apply_raw(tensor.nbytes(), const_cast<void*>(tensor.const_data_ptr()))) return failed;
    }
  }
  return caf::none;
}

}  // namespace troupe
