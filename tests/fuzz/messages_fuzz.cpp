// SPDX-License-Identifier: BSD-3-Clause
// Reads an input as one of troupe's messages, with tensors and attributes. What was read can be written and printed.
#include <array>
#include <concepts>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/packed_tensors.hpp>

#include "fuzzer.hpp"
#include "messages/samples.hpp"

namespace troupe::fuzz {

namespace {

/// What was read of compressed tensors can be decompressed, unless its scales are those of no finite elements.
void unpack(std::vector<at::Tensor> tensors, std::vector<packing> packings) {
  static tensor_memory memory;
  try {
    unpack_all(tensors, packings, memory);
  } catch (const error& refused) {
    if (std::string_view(refused.what()).find("a scale") == std::string_view::npos) std::abort();
  }
}

template <class T>
void read_message(const testing::bytes& from) {
  T x{};
  if (testing::decode(from, x)) return;
  to_string(x);
  if constexpr (std::same_as<T, tensor_piece>) return;  // its elements are with those that arrive
  if constexpr (requires { x.gradients; })
    unpack(x.gradients, x.packings);
  else if constexpr (requires { x.payload; })
    unpack(x.payload.tensors, x.payload.packings);
  else if constexpr (requires { x.packings; })
    unpack(x.tensors, x.packings);
  const auto written = testing::encoded(x);
  T again{};
  if (testing::decode(written, again)) std::abort();  // what was read and written has to be readable
}

template <std::size_t... I>
void read_one_of(std::size_t which, const testing::bytes& from, std::index_sequence<I...>) {
  static constexpr std::array readers = {&read_message<std::tuple_element_t<I, testing::message_types>>...};
  readers[which](from);
}

}  // namespace

void read_input(std::string_view bytes) {
  constexpr auto count = std::tuple_size_v<testing::message_types>;
  const auto which = take_choice(bytes, count);
  read_one_of(which, {bytes.begin(), bytes.end()}, std::make_index_sequence<count>());
  testing::arrived().drop(node_id{0});
}

}  // namespace troupe::fuzz
