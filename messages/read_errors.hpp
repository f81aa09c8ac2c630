// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <caf/error.hpp>

#include <troupe/messages/sender_check.hpp>

/// Stores, for each thread, why messages could not be read. CAF gives a broker an empty message in place of a message that
/// could not be read. The broker then calls take_read_error() to find the error with which it answers.
///   UM-1  the error of a message is stored until take_read_error() returns it, even if further messages are read before.
///   UM-2  at most `most_read_errors` errors are stored for a thread; one more drops the oldest. No error is stored if there is
///         no memory for it. No error of an answer is stored, because no broker asks for it.
namespace troupe {

inline constexpr std::size_t most_read_errors = 4096;

/// Stores the error of the message that this thread reads now (reading_from::message()).
void keep_read_error(caf::error why) noexcept;

/// Returns and removes the error of the message; no error if the message could be read.
caf::error take_read_error(message_key which = {}) noexcept;

}  // namespace troupe
