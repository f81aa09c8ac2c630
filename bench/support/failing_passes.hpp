// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/troupe.hpp>

namespace troupe::bench {

/// Adds the function "throws": its answer is its tensor times 2, and the backward of that answer throws.
void add_throwing_function(node& to);

/// The microseconds from the begin of a pass to its error, which is thrown on the node `to` (see add_throwing_function()) and is known
/// when the node has answered the abort: two round trips. Throws
/// std::runtime_error if the pass succeeds, and troupe::error if the pass fails for another reason.
double microseconds_until_error(node& here, const peer& to);

}  // namespace troupe::bench
