// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/inspect_test.cpp, tests/messages/hostile_test.cpp
#pragma once

#include <type_traits>
#include <utility>

#include <troupe/messages/generated/troupe.pb.h>
#include <troupe/messages/complaint.hpp>
#include <troupe/messages/messages.hpp>

/// Conversion between structs and protobuf headers, without the tensors. Private to this room.
namespace troupe {

/// The protobuf message that is the header of T.
template <class T>
struct header_of;
template <>
struct header_of<autograd_message> : std::type_identity<wire::Autograd> {};
template <>
struct header_of<hello> : std::type_identity<wire::Hello> {};
template <>
struct header_of<member> : std::type_identity<wire::Member> {};
template <>
struct header_of<std::vector<member>> : std::type_identity<wire::Members> {};
template <>
struct header_of<welcome> : std::type_identity<wire::Welcome> {};
template <>
struct header_of<heartbeat> : std::type_identity<wire::Heartbeat> {};
template <>
struct header_of<heartbeat_seen> : std::type_identity<wire::HeartbeatSeen> {};
template <>
struct header_of<farewell> : std::type_identity<wire::Farewell> {};
template <>
struct header_of<gossip> : std::type_identity<wire::Gossip> {};
template <>
struct header_of<call_request> : std::type_identity<wire::CallRequest> {};
template <>
struct header_of<call_result> : std::type_identity<wire::CallResult> {};
template <>
struct header_of<propagate_gradients> : std::type_identity<wire::PropagateGradients> {};
template <>
struct header_of<participant_quiet> : std::type_identity<wire::ParticipantQuiet> {};
template <>
struct header_of<participant_failed> : std::type_identity<wire::ParticipantFailed> {};
template <>
struct header_of<discover> : std::type_identity<wire::Discover> {};
template <>
struct header_of<discovered> : std::type_identity<wire::Discovered> {};
template <>
struct header_of<prune> : std::type_identity<wire::Prune> {};
template <>
struct header_of<abort_pass> : std::type_identity<wire::AbortPass> {};
template <>
struct header_of<pass_aborted> : std::type_identity<wire::PassAborted> {};
template <>
struct header_of<context_joined> : std::type_identity<wire::ContextJoined> {};
template <>
struct header_of<held_objects> : std::type_identity<wire::HeldObjects> {};
template <>
struct header_of<release_context> : std::type_identity<wire::ReleaseContext> {};
template <>
struct header_of<context_released> : std::type_identity<wire::ContextReleased> {};
template <>
struct header_of<node_status> : std::type_identity<wire::NodeStatus> {};
template <>
struct header_of<tensor_piece> : std::type_identity<wire::TensorPiece> {};
template <>
struct header_of<request_mark> : std::type_identity<wire::RequestMark> {};
template <>
struct header_of<memory_mark> : std::type_identity<wire::MemoryMark> {};
template <>
struct header_of<tensor_offer> : std::type_identity<wire::TensorOffer> {};

template <class T>
using header_t = typename header_of<T>::type;

/// True for messages with tensors. The header has a field `tensors` that describes the tensors.
template <class T>
inline constexpr bool has_tensors = requires {
  typename header_t<T>;
  std::declval<header_t<T>>().tensors();
};

template <class T>
auto& tensors_in(T& x) {
  if constexpr (requires { x.payload; })
    return x.payload.tensors;
  else if constexpr (requires { x.gradients; })
    return x.gradients;
  else
    return x.tensors;
}

/// Fills a header; the header must be clear.
void to_wire(const autograd_message& x, wire::Autograd& to);
void to_wire(const hello& x, wire::Hello& to);
void to_wire(const member& x, wire::Member& to);
void to_wire(const std::vector<member>& x, wire::Members& to);
void to_wire(const welcome& x, wire::Welcome& to);
void to_wire(const heartbeat& x, wire::Heartbeat& to);
void to_wire(const heartbeat_seen& x, wire::HeartbeatSeen& to);
void to_wire(const farewell& x, wire::Farewell& to);
void to_wire(const gossip& x, wire::Gossip& to);
void to_wire(const call_request& x, wire::CallRequest& to);
void to_wire(const call_result& x, wire::CallResult& to);
void to_wire(const propagate_gradients& x, wire::PropagateGradients& to);
void to_wire(const participant_quiet& x, wire::ParticipantQuiet& to);
void to_wire(const participant_failed& x, wire::ParticipantFailed& to);
void to_wire(const discover& x, wire::Discover& to);
void to_wire(const discovered& x, wire::Discovered& to);
void to_wire(const prune& x, wire::Prune& to);
void to_wire(const abort_pass& x, wire::AbortPass& to);
void to_wire(const pass_aborted& x, wire::PassAborted& to);
void to_wire(const context_joined& x, wire::ContextJoined& to);
void to_wire(const held_objects& x, wire::HeldObjects& to);
void to_wire(const release_context& x, wire::ReleaseContext& to);
void to_wire(const context_released& x, wire::ContextReleased& to);
void to_wire(const node_status& x, wire::NodeStatus& to);
void to_wire(const tensor_piece& x, wire::TensorPiece& to);
void to_wire(const request_mark& x, wire::RequestMark& to);
void to_wire(const memory_mark& x, wire::MemoryMark& to);
void to_wire(const tensor_offer& x, wire::TensorOffer& to);

/// Fills a struct from a header. Returns null, or what is wrong with the header.
complaint from_wire(const wire::Autograd& from, autograd_message& x);
complaint from_wire(const wire::Hello& from, hello& x);
complaint from_wire(const wire::Member& from, member& x);
complaint from_wire(const wire::Members& from, std::vector<member>& x);
complaint from_wire(const wire::Welcome& from, welcome& x);
complaint from_wire(const wire::Heartbeat& from, heartbeat& x);
complaint from_wire(const wire::HeartbeatSeen& from, heartbeat_seen& x);
complaint from_wire(const wire::Farewell& from, farewell& x);
complaint from_wire(const wire::Gossip& from, gossip& x);
complaint from_wire(const wire::CallRequest& from, call_request& x);
complaint from_wire(const wire::CallResult& from, call_result& x);
complaint from_wire(const wire::PropagateGradients& from, propagate_gradients& x);
complaint from_wire(const wire::ParticipantQuiet& from, participant_quiet& x);
complaint from_wire(const wire::ParticipantFailed& from, participant_failed& x);
complaint from_wire(const wire::Discover& from, discover& x);
complaint from_wire(const wire::Discovered& from, discovered& x);
complaint from_wire(const wire::Prune& from, prune& x);
complaint from_wire(const wire::AbortPass& from, abort_pass& x);
complaint from_wire(const wire::PassAborted& from, pass_aborted& x);
complaint from_wire(const wire::ContextJoined& from, context_joined& x);
complaint from_wire(const wire::HeldObjects& from, held_objects& x);
complaint from_wire(const wire::ReleaseContext& from, release_context& x);
complaint from_wire(const wire::ContextReleased& from, context_released& x);
complaint from_wire(const wire::NodeStatus& from, node_status& x);
complaint from_wire(const wire::TensorPiece& from, tensor_piece& x);
complaint from_wire(const wire::RequestMark& from, request_mark& x);
complaint from_wire(const wire::MemoryMark& from, memory_mark& x);
complaint from_wire(const wire::TensorOffer& from, tensor_offer& x);

}  // namespace troupe
