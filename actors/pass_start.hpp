// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/context_contract.hpp>
#include <troupe/actors/context_record.hpp>

namespace troupe {

class node_services;

/// Starts a pass on the calling thread: the first burst has run when it returns, which so costs no other thread's time before
/// the first gradients leave. Where gradients of earlier passes have to be gathered first, or the thread may not wait (a
/// future's continuation), the context's actor starts it. `job.result` tells of all that goes wrong.
void start_pass(node_services& here, const context_record_ptr& record, const context_actor& owner, const backward_job_ptr& job);

}  // namespace troupe
