// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "curves.hpp"

namespace troupe::bench {

/// Plots of the group "grain".

/// Functions of several lengths that run on another thread, by how many go there in one message.
plot functions_in_a_message(bool quick);
/// A pass over functions side by side with one more worker, by the time of a function: each function to whoever is free, and only those
/// that are at least as long as the grain.
plot pass_by_grain(bool quick);

}  // namespace troupe::bench
