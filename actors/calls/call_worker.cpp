// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/call_worker.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/Parallel.h>
#include <caf/actor_cast.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/calls/late_answer.hpp>
#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/departures.hpp>
#include <troupe/actors/services/message_clock.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/services/outbox.hpp>
#include <troupe/actors/services/running_work.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/actors/support/thread_modes.hpp>
#include <troupe/actors/support/work_times.hpp>
#include <troupe/actors/tracing/operator_log.hpp>
#include <troupe/actors/tracing/tracer.hpp>
#include <troupe/actors/transfers/transfers_ahead.hpp>
#include <troupe/devices/compressed_tensors.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/engine/thread_state.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::calls {

namespace {

constexpr std::int64_t shortest_wait_ns = 1'000'000;

using late_result = future<call_reply>;
thread_local std::optional<late_result> late;  // set by the function of the call that runs on this thread

class pool_observer : public blocking_observer {
 public:
  explicit pool_observer(uses<with_actors> here) : here_(here), outer_(std::exchange(current(), this)) {}
  ~pool_observer() override { current() = outer_; }
  void blocked() override {
    blocked_ns_ = support::steady_ns();
    if (outer_ != nullptr) outer_->blocked();
    caf::anon_send(here_.actors.gateway, support::blocked_atom::value);
  }
  void resumed() override {
    waited_ns_ += support::steady_ns() - blocked_ns_;
    caf::anon_send(here_.actors.gateway, support::resumed_atom::value);
    if (outer_ != nullptr) outer_->resumed();
  }
  std::int64_t waited_ns() const noexcept { return waited_ns_; }

 private:
  const uses<with_actors> here_;
  blocking_observer* outer_;
  std::int64_t blocked_ns_ = 0;
  std::int64_t waited_ns_ = 0;
};

engine::way_back way_back_of(const call_request& request, const program_place& place, const std::string& label) {
  const auto& payload = request.payload;
  if (!payload.context || payload.format == wire_format::exact) return {};
  return {payload.format, call_key_of(label, request.target.number, place, false)};
}

std::vector<at::Tensor> received(autograd_message& payload, engine::way_back back, uses<with_outbox> here) {
  devices::unpack_to_devices(payload.tensors, payload.packings, payload.devices, "argument", here.outbox.memory,
                             payload.ahead.made);
  if (!payload.context || payload.requires_grad.empty()) return payload.tensors;
  return engine::attach_recv(payload.context, payload.message, payload.tensors, payload.requires_grad, back);
}

void answer(contracts::incoming_call& job, const std::string& label, call_reply reply, uses<with_self, with_outbox> here) {
  const auto& request = job.request;
  auto what = "the result of '" + label + "' on node '" + here.self.name() + "'";
  if (request.payload.message.node != here.self.id()) check_can_travel(reply.values, what);
  auto outgoing = here.outbox.pack(request.payload.context, std::move(reply.tensors), what, request.payload.message.node,
                                   format_of_answer(request));
  job.arriving = std::move(outgoing.arriving);
  if (job.record) {
    if (outgoing.send) job.record->add({std::move(outgoing.send), 0}, {}, {support::call_scope::recorded()});
    job.result.participants = job.record->members.peers();
    job.result.is_child = job.record->members.joined_by(request.payload.message.node);
  }
  job.result.payload = std::move(outgoing.payload);
  job.result.payload.format = request.payload.format;
  job.result.values = std::move(reply.values);
}

std::string name_and_role(node_id who, uses<with_directory, with_network> here) {
  const auto proven = here.network.peers.introduced->find(who);
  return "node '" + here.directory.name(who) + "'" + (proven ? " of the role '" + proven->role + "'" : "");
}

std::string description(const contracts::incoming_call& job, const std::string& label,
                        uses<with_directory, with_network> here) {
  const auto& payload = job.request.payload;
  return "'" + label + "' called by " + name_and_role(payload.message.node, here) +
         (payload.context ? " in context " + to_string(payload.context) : "");
}

/// The `about` of log lines (NL-3): a number made from the calling peer and the name of the function. A peer can call any
/// number of function names, so all names of a peer share 64 numbers. The salt is secret: no peer knows which names share a
/// number, and no peer can choose the numbers of another peer.
auto subject_of(const contracts::incoming_call& job) {
  return [&job] {
    static const auto salt = std::to_string(std::random_device()());
    constexpr std::uint64_t most_of_peer = 64;
    const std::hash<std::string> number;
    return number(salt + std::to_string(job.request.payload.message.node.value) + ' ' +
                  std::to_string(number(salt + label_of(job.request.what)) % most_of_peer));
  };
}

void note_end(const contracts::incoming_call& job, const std::string& label, std::int64_t took_ns,
              uses<with_log, with_directory, with_network> here) {
  const auto text = [&](const char* how) {
    return description(job, label, here) + ": " + how + " after " + support::duration_text(took_ns);
  };
  if (job.failure)
    here.log.info(
      "calls", [&] { return text("failed") + ": " + job.failure->what(); }, subject_of(job));
  else
    here.log.debug("calls", [&] { return text("done"); });
}

/// Counts and logs a request of another node that this node has refused. Returns the error for the caller.
error refusal(const contracts::incoming_call& job, const std::string& label, const support::refused_request& why,
              refusal_services here) {
  const auto& request = job.request;
  if (request.from_itself) return why;
  ++here.counts.requests_refused;
  here.log.warn(
    "calls", [&] { return "refused a request: " + description(job, label, here) + ": " + why.what(); }, subject_of(job));
  return {why.code(), "refused to " + name_and_role(request.payload.message.node, here) + ": " + why.what()};
}

/// Answers the call, unless the result has large tensors. In that case `gateway` sends the large tensors, and then the answer.
void answer_unless_large(contracts::incoming_call& job) {
  if (job.failure) return job.answer.deliver(make_error(job.failure->code(), job.failure->what()));
  job.answer_bytes = bytes_of(job.result.payload.tensors, job.result.values);
  if (!transfers::any_large(job.result.payload.tensors)) job.answer.deliver(std::move(job.result));
}

/// Takes the result of a function that has returned before (LY-1).
void take(contracts::incoming_call& job, const late_result& done, uses<with_self, with_outbox> here) {
  try {
    answer(job, label_of(job.request.what), done.get(), here);
  } catch (const error& why) {
    job.failure = why;
  } catch (const std::exception& reason) {
    job.failure = error(errc::function_failed, support::text_of(reason));
  } catch (...) {
    job.failure = error(errc::function_failed, "an exception of unknown type");
  }
}

/// Runs the call on this thread. Never throws: an error goes to `job.failure`. Returns the result if it comes later.
std::optional<late_result> run_call(contracts::incoming_call& job, const call_surroundings& around) {
  TROUPE_EXPECT(around.handle != nullptr);
  const auto& here = around.services;
  auto& request = job.request;
  const auto label = label_of(request.what);
  const services::own_thread own(here.running, "the call of", label);
  const pool_observer observer(here);
  const auto begin = support::steady_ns();
  ++here.counts.calls_run;
  ++here.counts.calls_running;
  const auto spans = request.span != 0 ? std::make_shared<tracing::span_collector>() : nullptr;
  auto outer = std::exchange(late, std::nullopt);
  try {
    const tracing::operator_log log(spans);
    here.clock.witness(request.payload.message.number);
    if (here.is_ending) throw error(errc::stopping, "node '" + here.self.name() + "' is stopping");
    if (request.deadline_ns > 0 && begin - job.arrived_ns > request.deadline_ns) throw no_worker_in_time(job);
    const engine::thread_state_keeper keeper;  // restores the thread's libtorch state for its next call
    const support::anomaly_scope anomaly(!request.calls.empty());
    const support::call_bounds bounds{std::size_t{request.depth} + 1,
                                      request.deadline_ns > 0 ? job.arrived_ns + request.deadline_ns : 0, !request.from_itself,
                                      !request.payload.modes.autocast.empty()};
    const auto back = way_back_of(request, request.payload.place, label);
    support::call_scope scope(here.self.id(), request.payload.context, std::move(request.payload.place),
                              std::move(request.calls), bounds, request.payload.format);
    const support::modes_scope modes(request.payload.modes);
    call_arguments arguments{.here = *around.handle,
                             .target = request.target,
                             .values = std::move(request.values),
                             .tensors = received(request.payload, back, here),
                             .context = request.payload.context,
                             .gradients = job.gradients ? job.gradients : no_gradients(),
                             .called = label,
                             .caller = request.payload.message.node,
                             .from_itself = request.from_itself};
    request.payload.tensors.clear();
    auto reply = around.serve(request.what, arguments);
    if (!late) answer(job, label, std::move(reply), here);
  } catch (const support::refused_request& why) {
    job.failure = refusal(job, label, why, here);
  } catch (const std::exception& reason) {
    const auto* known = dynamic_cast<const error*>(&reason);
    job.failure = error(known != nullptr ? known->code() : errc::function_failed, support::text_of(reason));
  } catch (...) {
    job.failure = error(errc::function_failed, "an exception of unknown type");
  }
  auto result = std::exchange(late, std::move(outer));
  if (job.failure) result.reset();
  --here.counts.calls_running;
  const auto end = support::steady_ns();
  here.times.note(label, end - begin - observer.waited_ns());
  here.recorder.record(label, "call", begin, end, {}, tracing::flow_of(request.payload.message));
  note_end(job, label, end - begin, here);
  if (!spans) return result;
  tracing::trace_log log{{{here.self.name() + ": " + label, "call", job.arrived_ns, end, {}}}, 0};
  if (begin - job.arrived_ns > shortest_wait_ns) log.spans.push_back({"waits for a worker", "wait", job.arrived_ns, begin, {}});
  for (auto& span : spans->take()) log.spans.push_back(std::move(span));
  job.result.spans = tracing::pack(log);
  return result;
}

}  // namespace

void answer_later(future<call_reply> result) { late = std::move(result); }

error no_worker_in_time(const contracts::incoming_call& job) {
  const std::chrono::nanoseconds limit(job.request.deadline_ns);
  return error(errc::deadline_passed, "no answer within " +
                                        support::seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(limit)) +
                                        ": it waited for a worker of its node for as long");
}

void refuse_call(contracts::incoming_call& job, const error& why, refusal_services here) {
  here.log.info(
    "calls", [&] { return description(job, label_of(job.request.what), here) + ": refused: " + why.what(); }, subject_of(job));
  job.answer.deliver(make_error(why.code(), why.what()));
}

void refuse_call(contracts::incoming_call& job, const support::refused_request& why, refusal_services here) {
  const auto told = refusal(job, label_of(job.request.what), why, here);
  job.answer.deliver(make_error(told.code(), told.what()));
}

void serve_call(contracts::incoming_call_ptr job, const call_surroundings& around, const contracts::call_worker_actor& worker) {
  const auto& here = around.services;
  const auto depth = job->request.depth;
  auto result = run_call(*job, around);
  const auto to = job->request.payload.message.node;
  auto give_back = [owner = caf::actor_cast<caf::actor>(job->answer.asked()), job, to,
                    here = uses<with_directory>(here)](std::exception_ptr failure) {
    auto& payload = job->result.payload;
    if (failure) job->failure = contracts::not_copied(failure, payload.devices);
    if (!job->failure) here.directory.traffic.sent(to, payload.tensors, payload.packings);
    answer_unless_large(*job);
    caf::anon_send(owner, job);
  };
  auto compress = [job, to, here = uses<with_outbox>(here)] {
    auto& payload = job->result.payload;
    return here.outbox.compress(payload.tensors, payload.packings, payload.ahead, to, format_of_answer(job->request));
  };
  if (!result && job->arriving.events.empty()) {
    job->worker = caf::actor_cast<caf::strong_actor_ptr>(worker);
    return give_back(nullptr);
  }
  auto leave = [job, give_back, compress, here = uses<with_departures>(here)] {
    if (job->arriving.events.empty()) return give_back(nullptr);
    here.departures->post_in_steps(std::exchange(job->arriving, {}), compress, give_back);
  };
  if (!result) {
    leave();
  } else {
    result->then([job, leave, here = uses<with_self, with_outbox>(here)](const auto& done) {
      take(*job, done, here);
      leave();
    });
  }
  // At last: a worker that is no longer needed may end, and this thread uses the node's departures above.
  caf::anon_send(here.actors.gateway, support::free_atom::value, worker, depth);
}

contracts::call_worker_actor make_call_worker(const call_surroundings& around) {
  auto make = [around](const contracts::call_worker_actor& self) {
    return std::tuple{[around, self](contracts::incoming_call_ptr& job) { serve_call(std::move(job), around, self); }};
  };
  return support::spawn_handlers<contracts::call_worker_actor>(*around.services.actors.system, "troupe.call", std::move(make));
}

}  // namespace troupe::calls
