// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/contracts/workers.hpp>

namespace troupe {

class function_table;
class node;

}  // namespace troupe

namespace troupe::services {

class node_services;

}  // namespace troupe::services

namespace troupe::calls {

/// What a call that runs on this node has around it.
struct call_surroundings {
  node& handle;
  function_table& functions;
  services::node_services& services;
};

/// Has no thread of its own where the node has no network. Throws std::system_error where the system gives none.
contracts::call_worker_actor make_call_worker(const call_surroundings& here);

/// Does what the worker does with a call, on this thread and in its place.
void serve_call(contracts::incoming_call_ptr job, const call_surroundings& here, const contracts::call_worker_actor& worker);

}  // namespace troupe::calls
