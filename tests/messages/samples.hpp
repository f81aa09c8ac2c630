// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/inspect.hpp>
#include <troupe/messages/messages.hpp>

/// Random messages and tensors, and functions that compare them.
namespace troupe::testing {

using generator = std::mt19937_64;
using bytes = std::vector<char>;

template <class... Structs, class... Headers>
std::tuple<Structs...> structs_of(const wire::message_list<wire::message<Structs, Headers>...>&);

/// Every message type; tests run once for each.
using message_types = decltype(structs_of(wire::messages));

/// Every dtype that travels.
const std::vector<at::ScalarType>& travelling_dtypes();

/// The kinds of shape that make_tensor knows.
enum class shape_kind {
  zero_dim,
  vector,
  empty,
  matrix,
  transposed,
  channels_last,
  narrowed,
  every_second,
  expanded,
  offset,
  odd_stride_of_one,
  seven_dims,
  empty_inside,
  count
};
const char* to_string(shape_kind kind);

/// A tensor of that dtype and kind of shape with random bits (bools are bools).
at::Tensor make_tensor(generator& random, at::ScalarType dtype, shape_kind kind);

/// A random small tensor that can travel. The tensor is sometimes undefined or sparse.
at::Tensor make_tensor(generator& random);

/// The elements in row-major order, found by their strides.
bytes elements_of(const at::Tensor& tensor);

bool same(const at::Tensor& a, const at::Tensor& b);

template <class M, class T>
concept is = std::same_as<std::remove_const_t<M>, T>;

/// Structs, as opposed to classes and arrays.
template <class T>
concept plain = std::is_aggregate_v<T> && std::is_class_v<T> && !requires {
  std::tuple_size<std::remove_const_t<T>>::value;
};

struct anything {
  template <class T>
  operator T() const;
};

/// How many members a struct has.
template <class T, class... Members>
constexpr std::size_t member_count() {
  if constexpr (requires { T{Members()..., anything()}; })
    return member_count<T, Members..., anything>();
  else
    return sizeof...(Members);
}

/// The members of a struct, in order, so that no test can leave a member out.
template <plain T>
auto members(T& x) {
  constexpr auto count = member_count<std::remove_const_t<T>>();
  if constexpr (is<T, tensor_piece>) {  // its elements are with those that arrive
    auto& [a, b, c, d, elements, destination] = x;
    return std::tie(a, b, c, d, destination);
  } else if constexpr (is<T, call_request>) {  // the last member never travels
    auto& [a, b, c, d, e, f, g, h, i, j, from_itself] = x;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 0) {
    return std::tuple();
  } else if constexpr (count == 1) {
    auto& [a] = x;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = x;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = x;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = x;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = x;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = x;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = x;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = x;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = x;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = x;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = x;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = x;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = x;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = x;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (count == 23) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = x;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
  } else {
    static_assert(count == 0, "a struct has another number of members than any so far; add the number here");
  }
}

void fill(generator& random, bool& x);
void fill(generator& random, std::uint8_t& x);
void fill(generator& random, std::uint16_t& x);
void fill(generator& random, std::uint32_t& x);
void fill(generator& random, std::uint64_t& x);
void fill(generator& random, std::int64_t& x);
void fill(generator& random, std::array<std::uint64_t, 4>& x);
void fill(generator& random, message_id& x);
void fill(generator& random, std::string& x);
void fill(generator& random, member_state& x);
void fill(generator& random, attributes& x);
void fill(generator& random, double& x);
void fill(generator& random, requests::tensors& x);
void fill(generator& random, requests::group_rates& x);
void fill(generator& random, request& x);
void fill(generator& random, at::Tensor& x);
void fill(generator& random, wire_format& x);
inline void fill(generator&, sent_ahead&) {}
inline void fill(generator&, std::optional<errc>&) {}
void fill(generator& random, std::vector<packing>& x);
void fill(generator& random, std::vector<autocast_mode>& x);

/// Turns some of the tensors into packed ones.
void pack_some(generator& random, std::vector<at::Tensor>& tensors, std::vector<packing>& packings);
void fill(generator& random, std::vector<bool>& x);
void fill(generator& random, c10::Device& x);
void fill(generator& random, std::vector<c10::Device>& x);
template <class T>
void fill(generator& random, std::vector<T>& xs);

/// A transfer of one piece.
tensor_piece whole_transfer(generator& random, node_id from, std::uint64_t number);

template <plain T>
void fill(generator& random, T& x) {
  std::apply([&](auto&... parts) { (fill(random, parts), ...); }, members(x));
  if constexpr (std::same_as<T, autograd_message>) {
    x.requires_grad.resize(random() % 3 == 0 ? 0 : x.tensors.size());
    x.devices.resize(random() % 3 == 0 ? x.tensors.size() : 0, c10::Device(c10::kCPU));
    pack_some(random, x.tensors, x.packings);
  } else if constexpr (std::same_as<T, call_request>) {
    if (auto* tensors = std::get_if<requests::write>(&x.what)) {
      tensors->of = static_cast<requests::tensors>(random() % 3);  // nobody writes gradients
      tensors->names.resize(x.payload.tensors.size());
    }
  } else if constexpr (std::same_as<T, requests::create_optimizer>) {
    for (std::size_t i = 0; i < x.groups.size(); ++i) x.groups[i].number = i + 1;
  } else if constexpr (std::same_as<T, propagate_gradients>) {
    x.requires_grad.resize(random() % 3 == 0 ? 0 : x.gradients.size());
    x.shapes.resize(random() % 3 == 0 ? 0 : x.gradients.size());
    x.unreached.resize(random() % 3 == 0 ? 0 : x.gradients.size());
    pack_some(random, x.gradients, x.packings);
  } else if constexpr (std::same_as<T, member_news>) {
    x.who.formats = 0;  // news tell neither
    x.who.devices.clear();
  } else if constexpr (std::same_as<T, peer_status>) {
    x.who.formats = 0;
    x.who.devices.clear();
  } else if constexpr (std::same_as<T, member>) {
    x.id.value |= 1;  // 0 is no node
  } else if constexpr (std::same_as<T, tensor_piece>) {
    x = whole_transfer(random, x.from, x.transfer);
  } else if constexpr (std::same_as<T, weight_share>) {
    x.weight = {static_cast<std::uint32_t>(random() % 3), static_cast<std::uint32_t>(3 + random() % 100)};
    x.weight.resize(1 + random() % 2);
  }
}

template <class T>
void fill(generator& random, std::vector<T>& xs) {
  xs.resize(random() % 4);
  for (T& x : xs) fill(random, x);
}

template <class T>
T make(generator& random) {
  T x;
  fill(random, x);
  return x;
}

bool same(const attributes& a, const attributes& b);
bool same(const request& a, const request& b);
/// The list of the transfers that left ahead of a message is empty after reading.
inline bool same(const sent_ahead&, const sent_ahead&) { return true; }
/// What reading an offer did is not written.
inline bool same(const std::optional<errc>&, const std::optional<errc>&) { return true; }
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b);

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (plain<const T>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (same(std::get<I>(members(a)), std::get<I>(members(b))) && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(members(a))>>{});
  } else {
    return a == b;
  }
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same(static_cast<const T&>(a[i]), static_cast<const T&>(b[i]))) return false;
  return true;
}

/// Appends a message to `to`, written as CAF writes it.
template <class T>
caf::error encode(bytes& to, T& x) {
  caf::binary_serializer sink{static_cast<caf::execution_unit*>(nullptr), to};
  return sink(x);
}

template <class T>
bytes encoded(T& x) {
  bytes to;
  if (auto failed = encode(to, x)) throw std::runtime_error("not written: " + caf::to_string(failed));
  return to;
}

/// The bytes of a message with this header and `payload` zero bytes.
bytes framed(const std::string& header, std::size_t payload = 0);

/// An actor system that takes tensors in pieces, and the tensors that have arrived there.
caf::actor_system& reading_system();
arriving_tensors& arrived();

/// Reads a message as CAF does, in reading_system(). `left`: the number of bytes that were not read.
template <class T>
caf::error decode(const bytes& from, T& x, std::size_t* left = nullptr) {
  caf::binary_deserializer source{reading_system(), from.data(), from.size()};
  auto failed = source(x);
  if (left != nullptr) *left = source.remaining();
  return failed;
}

}  // namespace troupe::testing
