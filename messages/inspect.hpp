// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <string>

#include <caf/error.hpp>
#include <caf/fwd.hpp>

#include <troupe/messages/messages.hpp>

/// How messages travel. On the wire a message is: the length of its header (4 bytes) and of its payload (8 bytes), both
/// little-endian, the header (messages/troupe.proto), the elements of its tensors. Promises to whoever reads:
///   WI-1  reading never throws and never crashes, whatever the bytes are; a bad message gives malformed_message,
///   WI-2  sizes are checked before anything is allocated: at most 48 bytes for a byte of header, elements once,
///   WI-3  header fields and payload that this version does not know are passed over,
///   WI-4  what is read equals what was sent, bit for bit, the strides of dense tensors included,
///   WI-5  nothing is written of a message with a tensor that can't travel (see check_can_travel),
///   WI-6  elements that came ahead of a message, in pieces, are those of one tensor of it (see arriving_tensors),
///   WI-7  a struct that makes its CAF message longer than CAF's 32-bit length can say is not written: whoever reads the message
///         finds that nothing came of the struct,
///   WI-8  why a struct was not written is told on the sender's stderr.
namespace troupe {

template <class T, class... Ts>
concept one_of = (std::same_as<T, Ts> || ...);

/// The structs of messages.hpp, and lists of members.
template <class T>
concept travelling = one_of<T, autograd_message, hello, member, std::vector<member>, welcome, heartbeat, heartbeat_seen,
                            farewell, call_request, call_result, propagate_gradients, participant_quiet, participant_failed,
                            discover, discovered, prune, abort_pass, pass_aborted, context_joined, release_context,
                            context_released, node_status, tensor_piece, request_mark, memory_mark, tensor_offer>;

template <travelling T>
caf::error write_message(caf::serializer& sink, const T& x) noexcept;

template <travelling T>
caf::error read_message(caf::deserializer& source, T& x) noexcept;

/// Name, ids, counts and shapes, for logs; never the elements of a tensor.
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

/// Why this thread could last not read a message, and forgets it; none where all could be read. CAF itself hands on only
/// an empty message, so a broker asks here what to answer.
caf::error take_read_error() noexcept;

}  // namespace troupe
