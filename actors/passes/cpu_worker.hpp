// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace troupe::passes {

/// Work for another thread of this process. The function must not throw.
using cpu_work_ptr = std::shared_ptr<std::function<void()>>;

/// A compute thread that runs functions of local passes beside the thread that called backward.
///   CU-1  the worker runs the work in the order in which it was sent, and keeps none of it.
using cpu_worker_actor = caf::typed_actor<caf::reacts_to<cpu_work_ptr>>;

/// Spawns a worker with a thread of its own. Throws std::system_error if the system gives no thread.
cpu_worker_actor spawn_cpu_worker(caf::actor_system& system);

}  // namespace troupe::passes

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::passes::cpu_work_ptr)
