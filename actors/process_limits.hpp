// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// Lets this process open as many descriptors as the system allows it (the hard limit of `ulimit -Hn`). A node needs up to
/// three descriptors for each peer, and the usual limit is 1,024. Returns how many descriptors the process may open from now
/// on; the old limit if the system refuses more. `troupe` calls this function when it starts. A node does not call it: the
/// limit belongs to the whole process, and code that uses select(2) can't handle descriptors above 1,023.
std::uint64_t raise_descriptor_limit() noexcept;

/// Names the limits on the threads of this process, as a text for an error: "this user may have 100 processes and threads
/// (RLIMIT_NPROC, ulimit -u), this control group 512 (pids.max)".
std::string limits_on_threads();

}  // namespace troupe
