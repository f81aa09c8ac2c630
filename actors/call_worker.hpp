// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/call_jobs.hpp>

namespace troupe {

class company;

/// A thread that runs one remote call at a time: attaches what came, runs the registered function, attaches what it returns.
///   CW-1  every call it is given goes back to its owner, with a result or a failure that names node and function.
///         Where the result's elements are late, it goes when they are there, and the worker is free before.
///   CW-2  while the call blocks on a future the pool is told, before and after.
using call_worker_actor = caf::typed_actor<caf::reacts_to<incoming_call_ptr>>;

/// Has no thread of its own where the node has no network. Throws std::system_error where the system gives none.
call_worker_actor make_call_worker(company& here);

/// Does what the worker does with a call, on this thread and in its place.
void serve_call(incoming_call_ptr job, company& here, const call_worker_actor& worker);

}  // namespace troupe
