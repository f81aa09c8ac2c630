// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/pass_start.hpp>

#include <string>
#include <utility>
#include <variant>

#include <caf/send.hpp>

#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/burst_runner.hpp>
#include <troupe/actors/passes/graph_task_actor.hpp>
#include <troupe/actors/passes/pass_terms.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/engine/protocol/weight_throwing.hpp>

namespace troupe::passes {

void start_pass(const context_services& here, const contracts::context_record_ptr& record,
                const contracts::context_actor& owner, const contracts::backward_job_ptr& job) {
  std::optional<context_record::start> start;
  if (!detail::continuation_scope::active()) start = record->begin(true);
  if (!start) {
    if (record->passes().is_running()) return refuse_pass(here.log, *record, *job, pass_is_running());
    return caf::anon_send(owner, job);
  }
  const auto number = start->number;
  auto terms = make_terms(here, record, *job, std::move(*start));
  auto first = terms->participant->start(protocol::whole_weight());
  auto work = make_burst(*terms, burst::kind::run, std::move(std::get<protocol::participant::run_burst>(first.front()).share));
  // The reserved alarm is written to the terms before the alarm is set, because the graph task may read the terms as soon as
  // the alarm rings.
  terms->expiry = here.deadlines.reserve(job->deadline);
  // The record knows the graph task before a message leaves, so an answer finds the graph task.
  auto task = spawn_graph_task(here, terms);
  set_deadline(here.deadlines, task, terms->expiry);
  if (!record->set_task(number, task)) caf::anon_send(task, support::close_atom::value);  // the context was released meanwhile
  run_and_return(here, std::move(work), task);
}

contracts::graph_task_actor join_pass(const context_services& here, const contracts::context_record_ptr& record,
                                      pass_number number, bool keep_graph, bool create_graph) {
  if (record->id().node == here.self.id()) return record->task_of(number);
  auto start = record->follow(number);
  if (!start) return record->task_of(number);
  here.log.debug("passes", [&] {
    return "pass " + std::to_string(number.value) + " of context " + to_string(record->id()) + ": node '" +
           here.directory.name(record->id().node) + "' runs it here";
  });
  auto task = spawn_graph_task(here, make_terms(record, std::move(*start), keep_graph, create_graph));
  if (record->set_task(number, task)) return task;
  caf::anon_send(task, support::close_atom::value);
  return {};
}

}  // namespace troupe::passes
