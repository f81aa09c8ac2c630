// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include <caf/error.hpp>
#include <caf/fwd.hpp>

#include <troupe/messages/messages.hpp>

/// How messages travel. On the wire a message is: the length of its header (4 bytes) and of its payload (8 bytes), both
/// little-endian; the header (messages/troupe.proto); the elements of its tensors. Promises to every reader:
///   WI-1  reading never throws and never crashes, whatever the bytes are; for a bad message, reading returns
///         malformed_message,
///   WI-2  sizes and counts (message_size.hpp) are checked before memory is allocated: for its header, a message takes at most
///         48 bytes of memory a byte, and less than 256 MiB; for its elements, a message takes their bytes once,
///   WI-3  header fields and payload that this version does not know are skipped,
///   WI-4  the message that is read equals the message that was sent, bit for bit, including the strides of dense tensors,
///   WI-5  a message with a tensor that cannot travel (see check_can_travel) is not written at all,
///   WI-6  elements that came ahead of a message, in pieces, become elements of its tensors (see arriving_tensors); a change of
///         one tensor changes no other tensor,
///   WI-7  a struct that makes its CAF message longer than CAF's 32-bit length allows is not written: the reader gets
///         malformed_message, because nothing of the struct came,
///   WI-8  the sender's stderr says why a struct was not written.
namespace troupe {

namespace wire {

template <class Struct, class Header>
std::type_identity<Header> header_of(const message<Struct, Header>&);
template <class... Structs, class... Headers>
std::variant<const Structs*...> sent_of(const message_list<message<Structs, Headers>...>&);
template <class... Structs, class... Headers>
std::variant<Structs*...> read_of(const message_list<message<Structs, Headers>...>&);

/// A pointer to a message of any type: any_sent to write the message, any_read to read it.
using any_sent = decltype(sent_of(messages));
using any_read = decltype(read_of(messages));

}  // namespace wire

/// The types that inspect() writes and reads: the structs of messages.hpp, and lists of members.
template <class T>
concept travelling = requires {
  wire::header_of<T>(wire::messages);
};

caf::error write_message(caf::serializer& sink, wire::any_sent x) noexcept;
caf::error read_message(caf::deserializer& source, wire::any_read x) noexcept;

/// Returns the message as text for logs: the header in protobuf's text form, with long lists and texts cut, and the shapes of
/// the tensors. Elements of tensors are never shown.
std::string text_of(wire::any_sent x);

template <travelling T>
std::string to_string(const T& x) {
  return text_of(&x);
}

template <travelling T>
caf::error inspect(caf::serializer& sink, T& x) {
  return write_message(sink, &x);
}

template <travelling T>
caf::error inspect(caf::deserializer& source, T& x) {
  return read_message(source, &x);
}

}  // namespace troupe
