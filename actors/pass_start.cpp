// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/pass_start.hpp>

#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <troupe/actors/company.hpp>
#include <troupe/engine/protocol/purse.hpp>

namespace troupe {

pass_terms_ptr make_terms(const context_record_ptr& record, caf::strong_actor_ptr owner, context_record::start start,
                          bool keep_graph, bool create_graph) {
  auto terms = std::make_shared<pass_terms>();
  terms->context = record->id();
  terms->pass = start.number;
  terms->keep_graph = keep_graph;
  terms->create_graph = create_graph;
  terms->owner = std::move(owner);
  terms->task = std::make_unique<pass_task>();
  terms->task->record = record;
  for (std::size_t i = 0; i < start.sends.size(); ++i) terms->task->send_index.emplace(start.sends[i].function->message, i);
  auto& settings = terms->task->settings;
  settings.sends = std::move(start.sends);
  settings.recordings = std::move(start.recordings);
  settings.keep_graph = keep_graph;
  settings.create_graph = create_graph;
  return terms;
}

pass_terms_ptr make_terms(const context_record_ptr& record, caf::strong_actor_ptr owner, backward_job& job,
                          context_record::start start) {
  const auto number = start.number;
  auto peers = std::move(start.peers);
  if (job.create_graph || !start.recordings.empty()) start.recordings.push_back(std::move(job.recorded));
  auto terms = make_terms(record, std::move(owner), std::move(start), job.keep_graph, job.create_graph);
  if (job.create_graph) terms->place = std::move(job.place);
  auto& settings = terms->task->settings;
  settings.roots = std::move(job.roots);
  settings.root_gradients = std::move(job.gradients);
  terms->participants = std::move(peers);
  terms->deadline = job.deadline;
  terms->fast = job.fast;
  terms->outcome = std::make_shared<pass_outcome>(record, number, std::exchange(job.result, {}));  // see ~backward_job
  return terms;
}

void start_pass(company& here, const context_record_ptr& record, const context_actor& owner, const backward_job_ptr& job) {
  std::optional<context_record::start> start;
  if (!detail::continuation_scope::active()) start = record->begin(true);
  if (!start) {
    if (record->running()) return job->result.set_error(pass_is_running());
    return caf::anon_send(owner, job);
  }
  const auto number = start->number;
  auto terms = make_terms(record, caf::actor_cast<caf::strong_actor_ptr>(owner), *job, std::move(*start));
  std::set<message_id> sends;
  for (const auto& [send, index] : terms->task->send_index) sends.insert(send);
  terms->part.emplace(here.id(), std::move(sends));
  terms->part->start(protocol::whole_purse());
  auto work = make_burst(*terms, burst::kind::run, terms->part->take_burst());
  // Known before anything leaves: what comes back finds it.
  auto task = spawn_graph_task(here, terms);
  if (here.networked()) terms->expiry = set_deadline(here, task, job->deadline);
  record->hand_over(number, caf::actor_cast<caf::strong_actor_ptr>(task));
  run_and_return(here, std::move(work), task);
}

}  // namespace troupe
