// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::gate {

/// Which end of a TCP connection this process has.
enum class end { calling, called };

struct refusal {
  std::string why;         // one line, for both the log and the error of the caller
  bool has_ended = false;  // whether the other end has closed the connection, so nobody is refused
  bool may_pass = false;   // whether another host may have forged the refusal (TL-7), so a new connection may be let in
};

}  // namespace troupe::gate
