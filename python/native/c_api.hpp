// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>

/// Marks a function that Python calls by its C name (`ctypes`). Such a name begins with `torchtroupe_`.
#define TORCHTROUPE_EXPORT extern "C" __attribute__((visibility("default")))

namespace torchtroupe {

/// Null after success, otherwise the error's text, which lives until the thread's next call.
template <class Function>
const char* text_of_error(Function&& call) noexcept {
  static thread_local std::string text;
  try {
    call();
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "an exception of unknown type";
  }
  return text.c_str();
}

}  // namespace torchtroupe
