// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/contracts/context.hpp>
#include <troupe/actors/passes/context_record.hpp>

namespace troupe::services {

class node_services;

}  // namespace troupe::services

namespace troupe::passes {

/// Starts a pass on the calling thread: the first burst has run when it returns, which so costs no other thread's time before
/// the first gradients leave. Where gradients of earlier passes have to be gathered first, or the thread may not wait (a
/// future's continuation), the context's actor starts it. `job.result` tells of all that goes wrong.
void start_pass(services::node_services& here, const contracts::context_record_ptr& record,
                const contracts::context_actor& owner, const contracts::backward_job_ptr& job);

}  // namespace troupe::passes
