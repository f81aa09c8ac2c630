// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <exception>
#include <string>

#include <c10/util/Exception.h>

#include <troupe/messages/plain_text.hpp>

namespace troupe::support {

/// The text of an exception; without the backtrace for an exception of libtorch.
inline std::string text_of(const std::exception& reason) {
  const auto* torch = dynamic_cast<const c10::Error*>(&reason);
  return torch != nullptr ? torch->what_without_backtrace() : reason.what();
}

inline std::string text_of(const std::exception_ptr& reason) {
  try {
    std::rethrow_exception(reason);
  } catch (const std::exception& known) {
    return text_of(known);
  } catch (...) {
    return "an exception of unknown type";
  }
}

/// A time in seconds for an error text: "0.25 s".
inline std::string seconds_text(std::chrono::milliseconds time) {
  return number_text(static_cast<double>(time.count()) / 1e3) + " s";
}

}  // namespace troupe::support
