// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/openssl.hpp>

#include <openssl/err.h>

namespace troupe::certificates {

std::string take_problem() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  const auto* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text != nullptr ? text : "no reason is known";
}

int no_password(char*, int, int, void*) noexcept { return 0; }

}  // namespace troupe::certificates
