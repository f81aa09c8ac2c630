// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include <c10/core/Device.h>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/support/thread_actor.hpp>

namespace troupe::passes {

/// Work for another thread of this process: the lane asks to be served (engine/lane.hpp). The function must not throw.
using lane_work_ptr = std::shared_ptr<std::function<void()>>;

/// A compute thread that serves a lane: a CPU worker, or the device worker of an accelerator.
///   LW-1  the worker runs the work in the order in which it was sent, and keeps none of it.
///   LW-2  the device of a device worker is the current device of its thread, from the first work on: a device that no function uses
///         stays without a context.
using lane_worker_actor = caf::typed_actor<caf::reacts_to<lane_work_ptr>>;

/// Spawns a worker with a thread of its own. Throws std::system_error if the system gives no thread. `stay`: lets the actor system end
/// while work still runs.
lane_worker_actor spawn_cpu_worker(caf::actor_system& system, support::thread_stay_ptr stay = support::new_thread_stay());
lane_worker_actor spawn_device_worker(caf::actor_system& system, c10::Device device,
                                      support::thread_stay_ptr stay = support::new_thread_stay());

}  // namespace troupe::passes

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::passes::lane_work_ptr)
