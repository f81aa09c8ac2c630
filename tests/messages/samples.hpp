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

/// Every message type; tests run once for each.
using message_types =
  std::tuple<autograd_message, hello, member, std::vector<member>, welcome, heartbeat, heartbeat_seen, farewell, gossip,
             call_request, call_result, propagate_gradients, participant_quiet, participant_failed, discover, discovered, prune,
             abort_pass, pass_aborted, context_joined, held_objects, release_context, context_released, node_status,
             tensor_piece, request_mark, memory_mark, tensor_offer>;

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

/// The members of a message, in order. If a message gets a new member, these functions do not compile, so no test can leave the
/// member out.
template <class M, class T>
concept is = std::same_as<std::remove_const_t<M>, T>;
auto members(is<node_id> auto& x) {
  auto& [a] = x;
  return std::tie(a);
}
auto members(is<pass_number> auto& x) {
  auto& [a] = x;
  return std::tie(a);
}
auto members(is<context_id> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}
auto members(is<message_id> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}
auto members(is<object_id> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}
auto members(is<purse> auto& x) {
  auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
auto members(is<compute_modes> auto& x) {
  auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
// The list of the transfers that left ahead of a message is not compared, because the list is empty after reading.
auto members(is<autograd_message> auto& x) {
  auto& [a, b, c, d, e, f, ahead, format, packings, modes, detached] = x;
  return std::tie(a, b, c, d, e, f, format, packings, modes, detached);
}
auto members(is<bond> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}
auto members(is<hello> auto& x) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
}
auto members(is<member_news> auto& x) {
  auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
auto members(is<gossip> auto& x) {
  auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
auto members(is<member> auto& x) {
  auto& [a, b, c, d, e, f] = x;
  return std::tie(a, b, c, d, e, f);
}
auto members(is<welcome> auto& x) {
  auto& [a, b, c, d] = x;
  return std::tie(a, b, c, d);
}
auto members(is<heartbeat> auto& x) {
  auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
auto members(is<heartbeat_seen> auto& x) {
  auto& [a, b, c, d] = x;
  return std::tie(a, b, c, d);
}
auto members(is<held_objects> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}
auto members(is<farewell> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}
auto members(is<call_request> auto& x) {
  auto& [a, b, c, d, e, f, g, h, i, j, from_itself] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j);
}
auto members(is<call_result> auto& x) {
  auto& [a, b, c, d, e] = x;
  return std::tie(a, b, c, d, e);
}
auto members(is<propagate_gradients> auto& x) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, shapes, ahead, format, packings, answers, unreached] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, shapes, format, packings, answers, unreached);
}
auto members(is<tensor_piece> auto& x) {
  auto& [a, b, c, d, elements] = x;
  return std::tie(a, b, c, d);
}
auto members(is<request_mark> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}
auto members(is<memory_mark> auto& x) {
  auto& [a] = x;
  return std::tie(a);
}
auto members(is<tensor_offer> auto& x) {
  auto& [a, b, c, d, e, f, g, h] = x;
  return std::tie(a, b, c, d, e, f, g, h);
}
auto members(is<participant_quiet> auto& x) {
  auto& [a, b, c, d, e] = x;
  return std::tie(a, b, c, d, e);
}
auto members(is<participant_failed> auto& x) {
  auto& [a, b, c, d, e] = x;
  return std::tie(a, b, c, d, e);
}
auto members(is<discover> auto& x) {
  auto& [a, b, c, d, e] = x;
  return std::tie(a, b, c, d, e);
}
auto members(is<discovered> auto& x) {
  auto& [a, b, c, d] = x;
  return std::tie(a, b, c, d);
}
auto members(is<prune> auto& x) {
  auto& [a, b, c, d, e, f] = x;
  return std::tie(a, b, c, d, e, f);
}
auto members(is<abort_pass> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}
auto members(is<pass_aborted> auto& x) {
  auto& [a, b, c, d, e] = x;
  return std::tie(a, b, c, d, e);
}
auto members(is<context_joined> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}
auto members(is<release_context> auto& x) {
  auto& [a] = x;
  return std::tie(a);
}
auto members(is<context_released> auto& x) {
  auto& [a, b] = x;
  return std::tie(a, b);
}

auto members(is<peer_status> auto& x) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
}
auto members(is<node_status> auto& x) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
}
auto members(is<device_map_status> auto& x) {
  auto& [a, b, c] = x;
  return std::tie(a, b, c);
}

template <class T>
concept has_members = requires(T& x) {
  members(x);
};

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
void fill(generator& random, at::Tensor& x);
void fill(generator& random, wire_format& x);
void fill(generator& random, std::vector<packing>& x);
void fill(generator& random, std::vector<autocast_mode>& x);

/// Turns some of the tensors into packed ones.
void pack_some(generator& random, std::vector<at::Tensor>& tensors, std::vector<packing>& packings);
void fill(generator& random, std::vector<bool>& x);
void fill(generator& random, std::vector<c10::Device>& x);
template <class T>
void fill(generator& random, std::vector<T>& xs);

/// A transfer of one piece.
tensor_piece whole_transfer(generator& random, node_id from, std::uint64_t number);

template <has_members T>
void fill(generator& random, T& x) {
  std::apply([&](auto&... parts) { (fill(random, parts), ...); }, members(x));
  if constexpr (std::same_as<T, autograd_message>) {
    x.requires_grad.resize(random() % 3 == 0 ? 0 : x.tensors.size());
    x.devices.resize(random() % 3 == 0 ? x.tensors.size() : 0, c10::Device(c10::kCPU));
    pack_some(random, x.tensors, x.packings);
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
  } else if constexpr (std::same_as<T, purse>) {
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
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b);

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (has_members<const T>) {
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
