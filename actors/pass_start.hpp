// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <troupe/actors/context_actor.hpp>
#include <troupe/actors/context_record.hpp>
#include <troupe/actors/graph_task_actor.hpp>

namespace troupe {

class company;

/// What the graph task of a pass on this node needs. `owner`: the context's actor.
pass_terms_ptr make_terms(const context_record_ptr& record, caf::strong_actor_ptr owner, context_record::start start,
                          bool keep_graph, bool create_graph);

/// The same for a pass that a user starts on this node.
pass_terms_ptr make_terms(const context_record_ptr& record, caf::strong_actor_ptr owner, backward_job& job,
                          context_record::start start);

/// Starts a pass on the calling thread: the first burst has run when it returns, which so costs no other thread's time before
/// the first gradients leave. Where gradients of earlier passes have to be gathered first, or the thread may not wait (a
/// future's continuation), the context's actor starts it. `job.result` tells of all that goes wrong.
void start_pass(company& here, const context_record_ptr& record, const context_actor& owner, const backward_job_ptr& job);

}  // namespace troupe
