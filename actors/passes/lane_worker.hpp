// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <c10/core/Device.h>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/engine/lane.hpp>

namespace troupe::passes {

/// Work that a program gives to engine::cpu_workers::post(). It is a function, because workers of the engine may be threads of
/// any kind.
struct posted_work {
  std::function<void()> work;  // must not throw
  void operator()() const { work(); }
};

/// A compute thread that serves a lane: a CPU worker, or the device worker of an accelerator.
///   LW-1  the worker runs work in the order in which it was sent, and keeps no work after its run.
///   LW-2  a device worker makes its device current when its first work begins, not when its thread starts. When a device
///         becomes current, the driver makes a context on it. So a device that no function uses gets no driver context.
/// The tasks of a lane lie in memory that threads share; they are not sent to the worker as messages. So the thread of a pass
/// can take back a task that no worker has begun.
using lane_worker_actor = caf::typed_actor<caf::reacts_to<engine::serve_lane>, caf::reacts_to<posted_work>>;

/// Runs the work of one message.
using work_runner = std::function<void(std::function<void()> work)>;
inline void run_work(const std::function<void()>& work) { work(); }

/// Spawns a worker with a thread of its own. Throws std::system_error if the system gives no thread. `stay`: lets the actor
/// system end while work still runs.
lane_worker_actor spawn_lane_worker(caf::actor_system& system, c10::Device device, work_runner runner = run_work,
                                    support::thread_stay_ptr stay = support::new_thread_stay());

}  // namespace troupe::passes

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::engine::serve_lane)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::passes::posted_work)
