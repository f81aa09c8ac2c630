// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/support/durable_file.hpp>
#include <troupe/messages/attributes.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe::calls {

/// Whether the request calls a function or method of the user.
inline bool is_of_user(const request& what) {
  return std::holds_alternative<requests::function>(what) || std::holds_alternative<requests::method>(what);
}

/// Whether the request is a part of the user's graph: it calls a function or a method, or asks for a copy of a parameter. The
/// other requests carry weights and the like, and join no graph.
inline bool is_of_graph(const request& what) { return is_of_user(what) || std::holds_alternative<requests::parameter>(what); }

/// The wire format of a call: `wanted` for parts of the user's graph, else exact.
inline wire_format format_of(const request& what, wire_format wanted) {
  return is_of_graph(what) ? wanted : wire_format::exact;
}
/// The wire format of the tensors in the answer: copies of parameters are exact.
inline wire_format format_of_answer(const call_request& call) {
  return std::holds_alternative<requests::parameter>(call.what) ? wire_format::exact : call.payload.format;
}

/// An estimate of the bytes that the tensors and values of a call, or of an answer, take.
inline std::uint64_t bytes_of(const std::vector<at::Tensor>& tensors, const attributes& values) {
  constexpr std::uint64_t of_call = 256;
  constexpr std::uint64_t of_tensor = 256;  // without its elements
  constexpr std::uint64_t of_value = 64;
  auto result = of_call + payload_bytes(tensors);
  for (const auto& each : tensors) result += each.defined() ? of_tensor : sizeof each;
  for (const auto& [name, each] : values) {
    result += of_value + name.size() + sizeof each + troupe::bytes_of(each);
  }
  return result;
}

/// An estimate of the bytes that a call takes while it waits: its contracts::incoming_call, its entries in the tables of a
/// node, and the state that CAF keeps for the answer.
inline std::uint64_t bytes_of(const call_request& call) {
  constexpr std::uint64_t of_waiting = 1408;
  const auto& payload = call.payload;
  return of_waiting + bytes_of(payload.tensors, call.values) + troupe::bytes_of(call.what) + call.calls.size() +
         call.failed.size() * sizeof call.failed[0] + payload.place.size() * sizeof payload.place[0] +
         payload.requires_grad.size() + payload.devices.size() * sizeof payload.devices[0];
}

/// Whether the message of a call leaves in fragments. Messages that leave later may overtake a message in fragments (see
/// write_scheduler). Tensors that left ahead of the message do not count. If a tensor is sparse, all tensors count, because
/// `ahead` then has an entry for each component of a sparse tensor.
inline bool leaves_in_fragments(const call_request& call) {
  constexpr std::uint64_t least_bytes = std::uint64_t{250} << 10;  // a message with fewer leaves whole
  // Upper bounds of the bytes that describe a tensor, a size and a value.
  constexpr std::uint64_t of_tensor = 64;
  constexpr std::uint64_t of_size = 16;
  constexpr std::uint64_t of_value = 64;
  std::uint64_t result =
    call.calls.size() + troupe::bytes_of(call.what) + of_size * (call.failed.size() + call.payload.place.size());
  const auto& tensors = call.payload.tensors;
  const auto& ahead = call.payload.ahead.transfers;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    result += of_tensor + of_size * static_cast<std::uint64_t>(tensors[i].defined() ? tensors[i].dim() : 0);
    if (ahead.size() != tensors.size() || ahead[i] == 0) result += payload_bytes(tensors[i]);
  }
  for (const auto& [name, each] : call.values) result += of_value + name.size() + troupe::bytes_of(each);
  return result >= least_bytes;
}

/// Turns a number of 64 bits into an attribute, and back.
inline attribute to_attribute(std::uint64_t number) { return std::bit_cast<std::int64_t>(number); }
inline std::uint64_t number_from(const attributes& values, const std::string& name) {
  return std::bit_cast<std::uint64_t>(get<std::int64_t>(values, name));
}

/// Turns the pass history of a context into values, and back: "completed", and "0", "1" and so on for the passes that failed.
inline attributes to_attributes(const contracts::pass_history& known) {
  attributes result{{"completed", to_attribute(known.completed.value)}};
  for (std::size_t i = 0; i < known.failed.size(); ++i) result[std::to_string(i)] = to_attribute(known.failed[i].value);
  return result;
}
inline contracts::pass_history history_from(const attributes& values) {
  contracts::pass_history result{{number_from(values, "completed")}, {}};
  for (std::size_t i = 0; values.contains(std::to_string(i)); ++i)
    result.failed.push_back({number_from(values, std::to_string(i))});
  return result;
}

/// Turns a file's digest into the values "bytes", "sum" and "sum_kind", and back.
inline attributes to_attributes(const support::file_digest& digest) {
  return {{"bytes", to_attribute(digest.bytes)}, {"sum", to_attribute(digest.sum)}, {"sum_kind", support::checksum_name}};
}
inline support::file_digest digest_from(const attributes& values) {
  support::expect_checksum_name(get<std::string>(values, "sum_kind"));
  return {number_from(values, "bytes"), number_from(values, "sum")};
}

}  // namespace troupe::calls
