// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/contracts/workers.hpp>
#include <troupe/actors/passes/pass_services.hpp>

namespace troupe::passes {

/// Spawns the cpu_continuation actor of a node. Throws std::system_error if the system gives no thread.
contracts::cpu_continuation_actor spawn_cpu_continuation(uses<with_self, with_actors, with_garbage> here);

/// Spawns one of the node's burst_threads. Throws std::system_error if the system gives no thread.
contracts::burst_thread_actor spawn_burst_thread(const thread_services& here);

}  // namespace troupe::passes
