// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/contracts/workers.hpp>

namespace troupe::services {

struct node_services;

}  // namespace troupe::services

namespace troupe::passes {

/// Spawns the actor. Throws std::system_error if the system gives no thread.
contracts::cpu_continuation_actor spawn_cpu_continuation(services::node_services& here);

/// Spawns one of the node's burst_threads. Throws std::system_error if the system gives no thread.
contracts::burst_thread_actor spawn_burst_thread(services::node_services& here);

}  // namespace troupe::passes
