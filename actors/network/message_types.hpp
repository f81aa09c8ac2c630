// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/network/message_types_test.cpp
#pragma once

#include <string_view>

namespace troupe::network {

/// What other nodes may send, told by the names that CAF gives to types: "@<>+@atom+troupe.call" is a message of two values. CAF makes a value
/// of each type that a list names, before anybody has asked for such a value, and reads some of its own types without a limit.
///   MY-1  no node sends `@config_value`, `@group` or `@group_down`: the first may nest until the stack ends or throw while it is read, the
///         others make actors that nobody ends. CAF's messages of streams are neither answers nor parts of other messages.
///   MY-2  an error has a code, a category, and a message of values that are no messages themselves.

/// Whether a type of the list is one that no node sends (MY-1). `in_another`: the list is that of an answer or of a part.
bool has_harmful_type(std::string_view types, bool in_another) noexcept;
/// Whether a type of the list is one of CAF's whose values have messages in them.
bool has_nest(std::string_view types) noexcept;
/// Whether a value of the list takes as much memory as it announces, however few bytes have come.
bool has_unlimited_type(std::string_view types) noexcept;
/// Whether the bytes hold a list with a harmful type somewhere. Also true for a text that looks like it.
bool names_harmful_type(std::string_view bytes) noexcept;
/// Whether a list names what nodes answer each other: types of troupe's, numbers, texts, and pointers to actors.
bool is_answer_of_node(std::string_view types) noexcept;
/// Whether the bytes are an error as CAF writes it, without harmful types (MY-2).
bool is_plain_error(std::string_view bytes) noexcept;
/// CAF's list for a message that is an error.
inline constexpr std::string_view types_of_error = "@<>+@error";

}  // namespace troupe::network
