// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/distributed_pass_test.cpp, tests/actors/threads_of_calls_test.cpp, tests/actors/thread_state_of_calls_test.cpp
#pragma once

#include <functional>

#include <troupe/actors/contracts/workers.hpp>
#include <troupe/actors/function_table.hpp>
#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/requests.hpp>

namespace troupe {

class node;

}  // namespace troupe

namespace troupe::calls {

/// The services of the node that a running call and its answer use.
using call_services = uses<with_log, with_self, with_counts, with_directory, with_recorder, with_clock, with_network,
                           with_actors, with_times, with_running, with_is_ending, with_departures, with_outbox>;
/// The services of the node that the refusal of a call uses.
using refusal_services = uses<with_log, with_counts, with_directory, with_network>;

/// The objects that a call uses while it runs on this node.
struct call_surroundings {
  node* handle;  // null only in tests in which no call runs
  call_services services;
  std::function<call_reply(const request&, call_arguments&)> serve;  // runs the request
};

/// Spawns a worker: with a thread of its own, or on the scheduler if the actor system has_no_threads(). Throws
/// std::system_error if the system gives no thread.
contracts::call_worker_actor make_call_worker(const call_surroundings& here);

/// The error for a call that waited for a worker until its deadline.
error no_worker_in_time(const contracts::incoming_call& job);

/// Answers a call that has not started with an error, and logs the refusal.
void refuse_call(contracts::incoming_call& job, const error& why, refusal_services here);

/// Refuses a call that this node does not allow: answers the call with the error, counts and logs the refusal.
void refuse_call(contracts::incoming_call& job, const support::refused_request& why, refusal_services here);

/// Runs the call on this thread and answers the call (see CW-1). Then returns the call to `gateway`, and with it the news that
/// `worker` is free.
void serve_call(contracts::incoming_call_ptr job, const call_surroundings& here, const contracts::call_worker_actor& worker);

}  // namespace troupe::calls
