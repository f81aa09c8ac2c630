// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <string>

#include <caf/error.hpp>
#include <caf/fwd.hpp>

#include <troupe/messages/messages.hpp>

/// How messages travel. On the wire a message is: the length of its header (4 bytes) and of its payload (8 bytes), both
/// little-endian; the header (messages/troupe.proto); the elements of its tensors. Promises to every reader:
///   WI-1  reading never throws and never crashes, whatever the bytes are; a bad message gives malformed_message,
///   WI-2  sizes and counts (message_size.hpp) are checked before memory is allocated: for each byte of header at most 48 bytes, and
///         together less than 256 MiB; and the elements once,
///   WI-3  header fields and payload that this version does not know are skipped,
///   WI-4  the message that is read equals the message that was sent, bit for bit, including the strides of dense tensors,
///   WI-5  nothing is written of a message that has a tensor that cannot travel (see check_can_travel),
///   WI-6  elements that came ahead of a message, in pieces, are used for one tensor of the message (see arriving_tensors),
///   WI-7  a struct that makes its CAF message longer than CAF's 32-bit length allows is not written: the reader finds that
///         nothing of the struct came,
///   WI-8  the sender's stderr says why a struct was not written.
namespace troupe {

template <class T, class... Ts>
concept one_of = (std::same_as<T, Ts> || ...);

/// The structs of messages.hpp, and lists of members.
template <class T>
concept travelling =
  one_of<T, autograd_message, hello, member, std::vector<member>, welcome, heartbeat, heartbeat_seen, farewell, gossip,
         call_request, call_result, propagate_gradients, participant_quiet, participant_failed, discover, discovered, prune,
         abort_pass, pass_aborted, context_joined, held_objects, release_context, context_released, node_status, tensor_piece,
         request_mark, memory_mark, tensor_offer>;

template <travelling T>
caf::error write_message(caf::serializer& sink, const T& x) noexcept;

template <travelling T>
caf::error read_message(caf::deserializer& source, T& x) noexcept;

/// The message as text for logs: the header in protobuf's text form, with long lists and texts cut, and the shapes of the
/// tensors. Elements of tensors are never shown.
template <travelling T>
std::string to_string(const T& x);

template <travelling T>
caf::error inspect(caf::serializer& sink, T& x) {
  return write_message(sink, x);
}

template <travelling T>
caf::error inspect(caf::deserializer& source, T& x) {
  return read_message(source, x);
}

}  // namespace troupe
