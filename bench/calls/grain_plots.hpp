// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/curves.hpp"

namespace troupe::bench {

/// Plots of the group "grain".

/// Functions of several lengths that run on another thread, by how many go there in one message.
plot functions_in_a_message(bool quick);
/// A pass over functions side by side with one more worker, by the time of a function. In one curve every function may go to the worker, in
/// another one only functions that take at least the grain.
plot pass_by_grain(bool quick);

}  // namespace troupe::bench
