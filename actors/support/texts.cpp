// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/texts.hpp>

#include <c10/util/Exception.h>

namespace troupe::support {

std::string text_of(const std::exception& reason) {
  const auto* torch = dynamic_cast<const c10::Error*>(&reason);
  return torch != nullptr ? torch->what_without_backtrace() : reason.what();
}

std::string text_of(const std::exception_ptr& reason) {
  try {
    std::rethrow_exception(reason);
  } catch (const std::exception& known) {
    return text_of(known);
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace troupe::support
