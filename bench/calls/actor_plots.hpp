// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "../support/curves.hpp"

namespace troupe::bench {

/// Messages between actors of one process, by the kind of actor that answers, and by how many are under way at once.
plot messages_in_a_process(bool quick);

/// Parts of a small call and its answer, each alone, in microseconds: the messages of CAF within the two processes, without the time to
/// wake a thread; writing and reading the two headers; the tensors of both.
struct call_layers {
  double caf = 0;
  double headers = 0;
  double tensors = 0;
};
call_layers layers_of_call(int runs);

}  // namespace troupe::bench
