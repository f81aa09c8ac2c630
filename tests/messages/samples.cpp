// SPDX-License-Identifier: BSD-3-Clause
#include "samples.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include <ATen/ATen.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <troupe/messages/packed_tensors.hpp>

namespace troupe::testing {

namespace {

at::Tensor filled(generator& random, at::IntArrayRef sizes, at::ScalarType dtype) {
  at::Tensor tensor = at::empty(sizes, dtype);
  auto* to = static_cast<unsigned char*>(tensor.mutable_data_ptr());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i)
    to[i] = static_cast<unsigned char>(dtype == at::kBool ? random() & 1 : random());
  return tensor;
}

}  // namespace

const std::vector<at::ScalarType>& travelling_dtypes() {
  static const std::vector<at::ScalarType> dtypes = {at::kBool,
                                                     at::kByte,
                                                     at::kChar,
                                                     at::kShort,
                                                     at::kInt,
                                                     at::kLong,
                                                     at::kUInt16,
                                                     at::kUInt32,
                                                     at::kUInt64,
                                                     at::kHalf,
                                                     at::kBFloat16,
                                                     at::kFloat,
                                                     at::kDouble,
                                                     at::kComplexHalf,
                                                     at::kComplexFloat,
                                                     at::kComplexDouble,
                                                     at::kFloat8_e5m2,
                                                     at::kFloat8_e4m3fn,
                                                     at::kFloat8_e5m2fnuz,
                                                     at::kFloat8_e4m3fnuz,
                                                     at::kFloat8_e8m0fnu,
                                                     at::kFloat4_e2m1fn_x2};
  return dtypes;
}

const char* to_string(shape_kind kind) {
  static constexpr std::array names = {"zero_dim",          "vector",     "empty",        "matrix",   "transposed",
                                       "channels_last",     "narrowed",   "every_second", "expanded", "offset",
                                       "odd_stride_of_one", "seven_dims", "empty_inside"};
  static_assert(names.size() == static_cast<std::size_t>(shape_kind::count));
  return names[static_cast<std::size_t>(kind)];
}

at::Tensor make_tensor(generator& random, at::ScalarType dtype, shape_kind kind) {
  auto size = [&random] { return static_cast<std::int64_t>(2 + random() % 4); };
  switch (kind) {
    case shape_kind::zero_dim:
      return filled(random, {}, dtype);
    case shape_kind::vector:
      return filled(random, {size()}, dtype);
    case shape_kind::empty:
      return filled(random, {0}, dtype);
    case shape_kind::matrix:
      return filled(random, {size(), size()}, dtype);
    case shape_kind::transposed:
      return filled(random, {size(), size(), size()}, dtype).transpose(0, 2);
    case shape_kind::channels_last:
      return filled(random, {size(), size(), size(), size()}, dtype).permute({0, 3, 1, 2});
    case shape_kind::narrowed:
      return filled(random, {size(), size() + 2}, dtype).narrow(1, 1, 2);
    case shape_kind::every_second:
      return filled(random, {2 * size(), size()}, dtype).slice(0, 0, 100, 2);
    case shape_kind::expanded:
      return filled(random, {size(), 1}, dtype).expand({-1, size()});
    case shape_kind::offset:
      return filled(random, {size() + 3, size()}, dtype).narrow(0, 2, 3);
    case shape_kind::odd_stride_of_one:
      return filled(random, {6}, dtype).as_strided({1, 3, 2}, {77, 1, 3});
    case shape_kind::seven_dims:
      return filled(random, {1, 2, 1, 3, 1, 2, 1}, dtype).permute({6, 3, 1, 0, 2, 5, 4});
    default:
      return filled(random, {size(), 0, size()}, dtype).transpose(0, 1);
  }
}

at::Tensor make_tensor(generator& random) {
  if (random() % 6 == 0) return {};
  if (random() % 8 == 0) {
    auto entries = static_cast<std::int64_t>(random() % 4);
    const auto indices = filled(random, {2, entries}, at::kLong).remainder(5);
    auto sparse = at::sparse_coo_tensor(indices, filled(random, {entries, 2}, at::kInt), {5, 5, 2});
    return random() % 2 == 0 ? sparse.coalesce() : sparse;
  }
  const auto& dtypes = travelling_dtypes();
  auto kind = static_cast<shape_kind>(random() % static_cast<std::size_t>(shape_kind::count));
  return make_tensor(random, dtypes[random() % dtypes.size()], kind);
}

bytes elements_of(const at::Tensor& tensor) {
  bytes to;
  auto width = tensor.element_size();
  const auto* from = static_cast<const char*>(tensor.const_data_ptr());
  std::vector<std::int64_t> index(static_cast<std::size_t>(tensor.dim()), 0);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * tensor.strides()[d];
    to.insert(to.end(), from + offset * width, from + (offset + 1) * width);
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == tensor.sizes()[d];) index[d] = 0;
  }
  return to;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.is_sparse() || b.is_sparse()) {
    return a.is_sparse() && b.is_sparse() && a.sizes() == b.sizes() && a.is_coalesced() == b.is_coalesced() &&
           same(a._indices(), b._indices()) && same(a._values(), b._values());
  }
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && elements_of(a) == elements_of(b);
}

void fill(generator& random, bool& x) { x = (random() & 1) != 0; }
void fill(generator& random, std::uint8_t& x) { x = static_cast<std::uint8_t>(random()); }
void fill(generator& random, std::uint16_t& x) { x = static_cast<std::uint16_t>(random()); }
void fill(generator& random, std::uint32_t& x) { x = static_cast<std::uint32_t>(random()); }
// numbers of every length in bits, because small numbers are shorter on the wire
void fill(generator& random, std::uint64_t& x) { x = random() >> (random() % 64); }
void fill(generator& random, std::int64_t& x) { x = static_cast<std::int64_t>(random()) >> (random() % 64); }

void fill(generator& random, std::array<std::uint64_t, 4>& x) {
  for (auto& word : x) fill(random, word);
}

void fill(generator& random, message_id& x) {
  fill(random, x.number);
  x.number = std::min(x.number, highest_message_number);
  fill(random, x.node);
}

void fill(generator& random, std::string& x) {
  x.resize(random() % 20);
  for (char& c : x) c = static_cast<char>(random());  // any byte: names need not be UTF-8
}

void fill(generator& random, member_state& x) { x = static_cast<member_state>(random() % 4); }

void fill(generator& random, attributes& x) {
  static constexpr std::array doubles = {0.0,
                                         -0.0,
                                         1.5,
                                         std::numeric_limits<double>::quiet_NaN(),
                                         std::numeric_limits<double>::infinity(),
                                         -std::numeric_limits<double>::infinity(),
                                         std::numeric_limits<double>::denorm_min()};
  x.clear();
  for (auto n = random() % 5; n > 0; --n) {
    attribute& value = x[make<std::string>(random)];
    switch (random() % 7) {
      case 0:
        value = make<bool>(random);
        break;
      case 1:
        value = make<std::int64_t>(random);
        break;
      case 2:
        value = random() % 2 == 0 ? std::bit_cast<double>(random()) : doubles[random() % doubles.size()];
        break;
      case 3:
        value = std::vector{make<std::int64_t>(random), make<std::int64_t>(random)};
        break;
      case 4:
        value = std::vector<double>(random() % 3, doubles[random() % 3]);
        break;
      case 5:
        value = std::vector<std::string>(random() % 3, make<std::string>(random));
        break;
      default:
        value = make<std::string>(random);
        break;
    }
  }
}

void fill(generator& random, double& x) { x = static_cast<double>(make<std::int64_t>(random)) / 3; }
void fill(generator& random, requests::tensors& x) { x = static_cast<requests::tensors>(random() % 4); }

void fill(generator& random, requests::group_rates& x) {
  x.clear();
  for (auto n = random() % 3; n > 0; --n) fill(random, x[random() % 1000]);
}

template <class... Asked>
void fill_one(generator& random, std::variant<Asked...>& x) {
  std::size_t left = random() % sizeof...(Asked);
  const auto fill_chosen = [&]<class T>() {
    if (left-- == 0) x = make<T>(random);
  };
  (fill_chosen.template operator()<Asked>(), ...);
}
void fill(generator& random, request& x) { fill_one(random, x); }

bool same(const request& a, const request& b) {
  return a.index() == b.index() && std::visit([&]<class T>(const T& x) { return same(x, std::get<T>(b)); }, a);
}

void fill(generator& random, at::Tensor& x) { x = make_tensor(random); }

void fill(generator& random, wire_format& x) { x = static_cast<wire_format>(random() % 4); }
void fill(generator&, std::vector<packing>& x) { x.clear(); }
void fill(generator& random, std::vector<autocast_mode>& x) {
  x = {{c10::kCPU, at::kBFloat16}, {c10::kCUDA, at::kHalf}};
  x.resize(random() % 3);
}

/// The codec takes tensors of any size, so these are smaller than those that nodes pack.
void pack_some(generator& random, std::vector<at::Tensor>& tensors, std::vector<packing>& packings) {
  packings.clear();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (random() % 3 != 0) continue;
    const auto kind = random() % 2 == 0 ? shape_kind::transposed : shape_kind::matrix;
    const auto shape = make_tensor(random, at::kFloat, kind);
    packings.resize(tensors.size());
    auto& how = packings[i];
    how.format = static_cast<wire_format>(1 + random() % 3);
    how.exponent = how.format == wire_format::float16 ? static_cast<std::int32_t>(random() % 253) - most_exponent : 0;
    how.sizes = shape.sizes().vec();
    if (!shape.is_contiguous()) how.strides = shape.strides().vec();
    const auto bytes = packed_bytes(how.format, static_cast<std::uint64_t>(shape.numel()));
    tensors[i] = filled(random, {static_cast<std::int64_t>(bytes)}, at::kByte);
  }
}

void fill(generator& random, std::vector<c10::Device>& x) {
  x.clear();
  for (auto left = random() % 4; left > 0; --left)
    x.emplace_back(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(random() % 128));
}

tensor_piece whole_transfer(generator& random, node_id from, std::uint64_t number) {
  auto elements = filled(random, {static_cast<std::int64_t>(arriving_tensors::least_bytes + random() % 100)}, at::kByte);
  return {from, number, elements.nbytes(), 0, elements};
}

void fill(generator& random, c10::Device& x) {
  x = c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(random() % 128));
}

void fill(generator& random, std::vector<bool>& x) {
  x.resize(16);
  for (auto&& bit : x) bit = make<bool>(random);
}

namespace {

struct reading_config : caf::actor_system_config, tensor_receiver {
  reading_config() { set("scheduler.policy", caf::atom("testing")); }
};

reading_config& config() {
  static auto* only = new reading_config;  // never destroyed, so it outlives everything that was read
  return *only;
}

}  // namespace

caf::actor_system& reading_system() {
  static auto* only = new caf::actor_system{config()};
  return *only;
}

arriving_tensors& arrived() { return config().arriving(); }

bytes framed(const std::string& header, std::size_t payload) {
  bytes wire(12 + header.size() + payload);
  auto header_bytes = static_cast<std::uint32_t>(header.size());
  std::uint64_t payload_bytes = payload;
  std::memcpy(wire.data(), &header_bytes, 4);
  std::memcpy(wire.data() + 4, &payload_bytes, 8);
  std::memcpy(wire.data() + 12, header.data(), header.size());
  return wire;
}

bool same(const attributes& a, const attributes& b) {
  auto same_value = [](const attribute& left, const attribute& right) {
    const auto* x = std::get_if<double>(&left.value);
    const auto* y = std::get_if<double>(&right.value);
    return x != nullptr && y != nullptr ? std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y) : left == right;
  };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](const auto& left, const auto& right) {
           return left.first == right.first && same_value(left.second, right.second);
         });
}

}  // namespace troupe::testing
