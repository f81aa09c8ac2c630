// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/pass_terms.hpp>

#include <utility>

namespace troupe::passes {

error pass_is_running() {
  return error(errc::misuse, "a backward pass of this context is still running: wait for its future before starting another");
}

void refuse_pass(const logging::node_log& log, const context_record& record, contracts::backward_job& job, const error& why) {
  log.info("passes", [&] { return "a pass of context " + to_string(record.id()) + ": refused: " + why.what(); });
  job.result.set_error(why);
}

pass_terms_ptr make_terms(const contracts::context_record_ptr& record, context_record::start start, bool keep_graph,
                          bool create_graph, bool leads) {
  auto terms = std::make_shared<pass_terms>();
  terms->context = record->id();
  terms->pass = start.number;
  terms->keep_graph = keep_graph;
  terms->create_graph = create_graph;
  terms->task = std::make_unique<pass_task>();
  terms->task->record = record;
  terms->position = std::move(start.position);
  if (terms->task->guest = record->guests.next(); terms->task->guest)
    for (auto& each : terms->task->guest->sends()) start.sends.push_back(std::move(each));
  std::set<message_id> sends;
  for (std::size_t i = 0; i < start.sends.size(); ++i) {
    terms->task->send_index.emplace(start.sends[i].function->message, i);
    sends.insert(start.sends[i].function->message);
  }
  terms->participant.emplace(std::move(sends), terms->position, leads);
  auto& settings = terms->task->settings;
  settings.sends = std::move(start.sends);
  settings.recordings = std::move(start.recordings);
  settings.keep_graph = keep_graph;
  settings.create_graph = create_graph;
  return terms;
}

pass_terms_ptr make_terms(pass_outcome::used_services here, const contracts::context_record_ptr& record,
                          contracts::backward_job& job, context_record::start start) {
  const auto number = start.number;
  auto peers = std::move(start.peers);
  if (job.create_graph || !start.recordings.empty()) start.recordings.push_back(std::move(job.recorded));
  auto terms = make_terms(record, std::move(start), job.keep_graph, job.create_graph, true);
  if (job.create_graph) terms->program = std::move(job.place);
  terms->task->streams = std::move(job.streams);
  auto& settings = terms->task->settings;
  settings.roots = std::move(job.roots);
  settings.root_gradients = std::move(job.gradients);
  terms->participants = std::move(peers);
  terms->deadline = job.deadline;
  terms->fast = job.fast;
  auto result = std::exchange(job.result, {});  // so that ~backward_job does not complete the future
  terms->outcome = std::make_shared<pass_outcome>(here, record, number, std::move(result));
  return terms;
}

contracts::burst_ptr make_burst(pass_terms& terms, burst::kind what, protocol::burst_share share) {
  return std::make_shared<burst>(burst{terms, what, std::move(share), {}, {}, std::move(terms.task)});
}

}  // namespace troupe::passes
