// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe::apps {

/// Starts a child as process_group promises (PG-1 to PG-3). The kernel kills it when the calling *thread* ends: call from one
/// that lives as long as the child may. `output`: becomes its stdout and stderr; -1: those of this process. Throws
/// std::system_error when it can't run.
pid_t spawn_process(const std::vector<std::string>& arguments, int output);

}  // namespace troupe::apps
