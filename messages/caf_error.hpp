// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <caf/error.hpp>
#include <caf/make_message.hpp>  // the macro below needs it

#include <troupe/messages/errors.hpp>

CAF_ERROR_CODE_ENUM(troupe::errc, "troupe")

/// troupe's errors as CAF's, and back.
namespace troupe {

/// An error between actors: code and text.
caf::error make_error(errc code, std::string text);

/// What a handler caught: a troupe::error keeps its code, anything else is function_failed. `where` goes before the text.
caf::error make_error(const std::exception& caught, std::string_view where = {});

/// Any error of an actor as users of the C++ API see it: ours with code and text, CAF's own by what it means here (a
/// request's timeout is deadline_passed, a receiver that is gone peer_down). `where` goes before the text.
error to_exception(const caf::error& from, std::string_view where = {});

}  // namespace troupe
