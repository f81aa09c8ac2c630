// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/atoms.hpp>
#include <troupe/actors/burst.hpp>
#include <troupe/actors/call_jobs.hpp>
#include <troupe/actors/graph_task_actor.hpp>

namespace troupe {

class company;

/// What is freed away from the control plane: graphs and tensors.
using garbage_ptr = std::shared_ptr<void>;

/// The node's compute thread for backward passes: runs the bursts of passes and adds gradients up.
///   CC-1  it owns a burst's state machine from the message that brings it to the one that returns it, and keeps nothing.
///   CC-2  every burst comes back, whatever its functions throw.
using cpu_continuation_actor =
  caf::typed_actor<caf::reacts_to<burst_ptr, graph_task_actor>,
                   caf::replies_to<merge_atom, gradients_ptr, table_ptr>::with<gradients_ptr>,  // a new table with both summed
                   caf::reacts_to<garbage_ptr>>;

/// With a thread of its own where the node has a network, else on the scheduler. Throws std::system_error where the system gives no
/// thread.
cpu_continuation_actor spawn_cpu_continuation(company& here);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::garbage_ptr)
