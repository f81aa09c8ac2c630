// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/worker_contracts.hpp>

namespace troupe {

class node_services;

/// With a thread of its own where the node has a network, else on the scheduler. Throws std::system_error where the system gives no
/// thread.
cpu_continuation_actor spawn_cpu_continuation(node_services& here);

}  // namespace troupe
