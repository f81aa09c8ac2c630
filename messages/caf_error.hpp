// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <caf/error.hpp>
#include <caf/make_message.hpp>  // CAF_ERROR_CODE_ENUM needs it

#include <troupe/messages/errors.hpp>

CAF_ERROR_CODE_ENUM(troupe::errc, "troupe")

/// Conversions between troupe's errors and CAF's.
namespace troupe {

/// Makes an error that actors send to each other.
caf::error make_error(errc code, std::string text);

/// Makes the CAF error for a caught exception. A troupe::error keeps its code, any other exception becomes function_failed. The
/// text begins with `where`.
caf::error make_error(const std::exception& caught, std::string_view where = {});

/// Makes the troupe::error for any CAF error. troupe's own errors keep code and text. CAF's errors get the code that they mean
/// for users of troupe: a request timeout becomes deadline_passed, a receiver that is gone becomes peer_down. The text begins
/// with `where`.
error to_exception(const caf::error& from, std::string_view where = {});

}  // namespace troupe
