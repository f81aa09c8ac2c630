// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "parts.hpp"

namespace troupe::bench {

/// A node with the function "weights", which returns a parameter of 16 MiB. Prints "ready"; serves until SIGTERM.
void serve_weights(const part_arguments& with);

/// Sends gradients of 16 MiB to the node b, which gathers them: a backward pass from the result of "weights". Passes without compression
/// and in the format take turns. The time is that of the pass alone, from its begin to its end on both nodes.
///   format, count                    -> exact_ms, packed_ms
void send_gradients(const part_arguments& with);

}  // namespace troupe::bench
