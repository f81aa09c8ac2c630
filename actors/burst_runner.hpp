// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/graph_task_contract.hpp>

namespace troupe {

class node_services;

/// Runs the burst on this thread and returns it to `owner`. If it was the pass's last, the pass is complete when this returns.
void run_and_return(node_services& here, burst_ptr work, const graph_task_actor& owner);

}  // namespace troupe
