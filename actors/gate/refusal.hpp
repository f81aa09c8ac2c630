// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe::gate {

/// Which end of a TCP connection this process has.
enum class end { calling, called };

struct refusal {
  std::string why;         // one line, for both the log and the error of the caller
  bool has_ended = false;  // the other end has gone: nobody is left to be refused
  bool may_pass = false;   // somebody else on the network may have sent it (TL-7): the next connection may be let in
};

}  // namespace troupe::gate
