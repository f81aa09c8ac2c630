// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <caf/error.hpp>

#include <troupe/messages/sender_check.hpp>

/// The reasons why messages could not be read. In place of such a message CAF gives a broker an empty one, so the broker asks
/// here what to answer. The errors are those of the calling thread.
///   UM-1  the error of a message is kept until it is taken, also if further messages are read before.
///   UM-2  at most `most_read_errors` errors are kept; then the oldest is dropped. No error is kept if there is no memory for
///         it. No error of an answer is kept, because no broker asks for it.
namespace troupe {

inline constexpr std::size_t most_read_errors = 4096;

/// Keeps the error for the message that is read now (reading_from).
void keep_read_error(caf::error why) noexcept;

/// Returns why the message could not be read, and forgets it; no error if the message could be read.
caf::error take_read_error(message_key which = {}) noexcept;

}  // namespace troupe
