// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/burst.hpp>

#include <algorithm>
#include <chrono>
#include <exception>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/contracts/send_credits.hpp>
#include <troupe/actors/future.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/services/departures.hpp>
#include <troupe/actors/services/message_clock.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/outbox.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/actors/support/thread_modes.hpp>
#include <troupe/actors/transfers/transfers_ahead.hpp>
#include <troupe/devices/compressed_tensors.hpp>
#include <troupe/devices/present_devices.hpp>
#include <troupe/engine/plan.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/engine/torch_compat.hpp>
#include <troupe/messages/expect.hpp>
#include <troupe/messages/packed_tensors.hpp>
#include <troupe/messages/plain_text.hpp>
#include <troupe/messages/repeated_elements.hpp>
#include <troupe/messages/tensor_codec.hpp>

namespace troupe::passes {

namespace {

/// Compresses the gradients, and counts them as sent. To be called when all their elements are on the host, before they leave,
/// and again when what it returns has come.
devices::staged make_ready(uses<with_directory, with_outbox> here, propagate_gradients& message, node_id to,
                           engine::way_back back) {
  auto rest = here.outbox.compress(message.gradients, message.packings, message.ahead, to, back.format, back.call_key);
  if (rest.events.empty()) here.directory.traffic.sent(to, message.gradients, message.packings);
  return rest;
}

/// Sends each gradient that reaches a recv to the node that had sent the tensor. The burst goes on meanwhile.
class gradient_outlet : public engine::outlet {
 public:
  explicit gradient_outlet(const burst_services& here)
      : services_(here), peers_(here.directory), own_id_(here.self.id()), departures_(*here.departures) {
    TROUPE_EXPECT(here.departures);
  }

  void bind(burst& work) { work_ = &work; }

  void emit(const engine::recv_backward& from, std::vector<at::Tensor> gradients, std::vector<bool> unreached,
            bool more) override {
    if (from.context != work_->context)
      throw error(errc::misuse, "the graph leads to a call that was made in another context, " + to_string(from.context) +
                                  "; this pass is one of " + to_string(work_->context) +
                                  ": make the call again in this context, or detach what came of it");
    auto to = from.message.node;
    auto gateway = peers_.gateway(to);
    if (!gateway) throw error(errc::peer_down, "gradients for node '" + peers_.name(to) + "' can't be sent: it is down");
    services_.outbox.warn_of_profiler(to);
    propagate_gradients message;
    message.context = work_->context;
    message.pass = work_->pass;
    message.message = from.message;
    message.unreached = std::move(unreached);
    if (work_->create_graph) join(message, gradients, to);
    leave_out_repetition(message, gradients);
    auto staged = services_.outbox.stage(std::move(gradients), to, from.back.format, from.back.call_key);
    for (const auto& gradient : staged.tensors)
      if (gradient.defined())
        check_can_travel(gradient, "a gradient for node '" + peers_.name(to) + "'", staged.offers(gradient));
    message.ahead.made = staged.made;
    message.ahead.unfinished = staged.rest;
    message.gradients = travelling_forms(staged.tensors);
    if (staged.events.empty()) make_ready(services_, message, to, from.back);
    auto credit = take_credit(to, message.gradients);
    message.format = from.back.format;
    auto given = work_->share.give(to, more);
    message.carried = std::move(given.carried);
    message.answers = given.answers;
    message.keep_graph = work_->keep_graph;
    message.create_graph = work_->create_graph;
    message.from = peers_.name(own_id_);
    send(to, gateway, std::move(message), std::move(staged), std::move(credit), from.back);
  }

  /// Adds to the context record the recordings that this pass made since the last tell_context(), and `send`, if there is one.
  void tell_context(engine::pointer_to<engine::send_backward> send, node_id to) {
    auto& made = work_->state->recorder.made;
    if (send || !made.empty()) work_->state->record->add({std::move(send), 0}, to, std::exchange(made, {}));
  }

 private:
  /// Messages with fewer bytes take no credit: they leave directly for the gateway of the other node.
  static constexpr std::uint64_t least_counted = std::uint64_t{64} << 10;

  // Waits while too many bytes of gradients are under way to the node. The wait ends when the node has taken bytes or is down,
  // when the pass is over or when this node stops. A continuation can't wait: there the gradients leave without credit.
  contracts::send_credits::credit take_credit(node_id to, const std::vector<at::Tensor>& gradients) {
    const auto bytes = payload_bytes(gradients);
    if (to == own_id_ || bytes < least_counted) return {};
    using credits = contracts::send_credits;
    auto result =
      services_.gradient_credits.take({to, 0}, bytes, std::chrono::steady_clock::time_point::max(), work_->stop.get());
    if (result.how == credits::outcome::stopped)
      throw error(errc::pass_aborted, "the pass was over before gradients for node '" + peers_.name(to) + "' could leave");
    return std::move(result.taken);
  }

  // With create_graph, joins the graph of the gradients to the graph of the receiver. The record knows the send before the
  // message leaves.
  void join(propagate_gradients& message, const std::vector<at::Tensor>& gradients, node_id to) {
    message.place = work_->program;
    message.joint = {services_.clock.next_number(), own_id_};
    auto send = engine::attach_send(message.joint, gradients);
    if (!send) return;
    for (const auto& gradient : gradients) message.requires_grad.push_back(gradient.defined() && gradient.requires_grad());
    tell_context(std::move(send), to);
  }

  static void leave_out_repetition(propagate_gradients& message, std::vector<at::Tensor>& gradients) {
    std::vector<std::vector<std::int64_t>> shapes(gradients.size());
    bool any = false;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      gradients[i] = without_repetition(gradients[i], shapes[i]);
      any = any || !shapes[i].empty();
    }
    if (any) message.shapes = std::move(shapes);
  }

  // A message whose elements come late from a device, or leave in pieces, leaves later than other messages. The weight leaves
  // with the message, so the pass is not complete before the message has left.
  void send(node_id id, const contracts::gateway_actor& to, propagate_gradients message, devices::staged arriving,
            contracts::send_credits::credit credit, engine::way_back back) {
    const bool large = transfers::any_large(message.gradients);
    if (arriving.events.empty() && !large && !credit) return caf::anon_send(to, std::move(message));
    auto leaving = std::make_shared<contracts::outgoing_gradients>(
      contracts::outgoing_gradients{id, std::move(message), arriving.devices, std::move(credit)});
    if (arriving.events.empty()) return caf::anon_send(services_.actors.gateway, std::move(leaving));
    auto initiator = peers_.gateway(work_->context.node);
    auto compress = [here = uses<with_directory, with_outbox>(services_), leaving, back] {
      return make_ready(here, leaving->message, leaving->to, back);
    };
    // When the copy has failed, the node may have ended. So `sent_on` uses no service of the node.
    auto sent_on = [gateway = services_.actors.gateway, initiator, leaving, from = own_id_,
                    what = "gradients for node '" + peers_.name(id) + "', which come from " +
                           devices::names_of_accelerators(arriving.devices) +
                           ", could not be made ready to leave"](std::exception_ptr failure) {
      if (!failure) return caf::anon_send(gateway, leaving);
      const auto& message = leaving->message;
      auto text = "backward on node '" + message.from + "' failed: " + what + ": " + support::text_of(failure);
      if (initiator)
        caf::anon_send(initiator, participant_failed{message.context, message.pass, from,
                                                     static_cast<std::uint8_t>(errc::function_failed), std::move(text)});
    };
    departures_.post_in_steps(std::move(arriving), std::move(compress), std::move(sent_on));
  }

  burst* work_ = nullptr;
  const burst_services services_;
  const membership::peer_directory& peers_;
  node_id own_id_;
  services::departures& departures_;
};

/// Expands gradients that came without their repeated elements. The shape must be that of the tensor in the forward. Any other
/// shape is refused before anything is computed, because a message of a few bytes could claim a tensor of any size.
void repeat(std::vector<at::Tensor>& gradients, const std::vector<std::vector<std::int64_t>>& shapes,
            const torch::autograd::Node& send) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].empty()) continue;
    const auto& edge = i < send.num_outputs() ? send.next_edge(i) : torch::autograd::Edge{};
    const auto* expected = edge.is_valid() ? &edge.function->input_metadata(edge.input_nr) : nullptr;
    const auto shape = expected != nullptr && !expected->is_nested_tensor()
                         ? c10::asIntArrayRefSlowOpt(expected->shape_as_dim_vector())
                         : std::nullopt;
    const bool fits = shape && *shape == at::IntArrayRef(shapes[i]);
    if (!fits) {
      classic_ostringstream text;
      text << "gradient " << i << " is said to have the shape " << at::IntArrayRef(shapes[i])
           << ", which is not that of the tensor that was sent";
      throw error(errc::malformed_message, text.str());
    }
    gradients[i] = with_repetition(gradients[i], shapes[i]);
  }
}

/// The pass workers for a burst on this thread. Null on the thread of a call and on a network thread: the blocking_observer of
/// such a thread has to be told when the burst waits. Nobody would tell the observer when a hook on a pass worker waits.
engine::cpu_workers* workers_for_this_thread(const burst_services& here) {
  const auto* told = blocking_observer::current();
  return told == nullptr || told->hears_workers() ? here.pass_workers.load() : nullptr;
}

void run_functions(burst& work, engine::graph_task& task, const burst_services& here) {
  const auto& index = work.state->send_index;
  const auto& graph = task.graph();
  for (auto& [send, gradients, joint, requires_grad, shapes, format, packings, unreached, made] : work.deliveries) {
    const auto number = index.at(send);
    devices::unpack_to_devices(gradients, packings, graph.vertices[graph.sends[number]].function->next_edges(),
                               "received gradient", here.outbox.memory, made);
    repeat(gradients, shapes, *graph.vertices[graph.sends[number]].function);
    if (!requires_grad.empty()) {
      const auto from = engine::recording_from_now({}).from;
      gradients = engine::attach_recv(work.context, joint, gradients, requires_grad, {format, 0});
      work.state->recorder.note(from, task.place_of_delivery(number));
    }
    task.deliver(number, std::move(gradients), unreached);
  }
  work.deliveries.clear();
  for (auto send : work.sends) task.drop(index.at(send));
  task.use_workers(workers_for_this_thread(here));
  task.run(work.stop.get());
  const checked_lock lock(work.state->leaves_mutex);
  work.state->leaves.made_here();
}

void walk(burst& work, engine::graph_task& task) {
  if (work.what == burst::kind::walk_roots) {
    work.recvs = task.reach_from_roots();
    return;
  }
  std::vector<std::size_t> sends;
  for (auto send : work.sends)
    if (auto found = work.state->send_index.find(send); found != work.state->send_index.end()) sends.push_back(found->second);
  work.recvs = task.reach_from_sends(sends);
}

/// In anomaly mode: the calls and the line of the program that made the failed function, as text.
std::string origin(const engine::graph_task& task, const std::string& text) {
  std::string result;
  if (const auto calls = task.failed_calls(); !calls.empty()) result += "\nIt was made where " + calls + ".";
  if (const auto trace = task.failed_trace(); !trace.empty() && text.find(trace) == std::string::npos) result += "\n" + trace;
  return result;
}

error describe(const std::exception& reason, const burst& work, const std::string& node) {
  auto function = work.state->task ? work.state->task->failed_function() : std::string{};
  auto where = function.empty() ? "backward on node '" + node + "' failed: "
                                : "backward on node '" + node + "' failed in " + function + ": ";
  const auto* known = dynamic_cast<const error*>(&reason);
  auto text = support::text_of(reason);
  if (text.find("backward through the graph a second time") != std::string::npos)
    text += " (In a context: with backward_options::keep_graph.)";
  if (work.state->task) text += origin(*work.state->task, text);
  const auto& guest = work.state->guest;
  return error(known != nullptr ? known->code() : errc::function_failed,
               guest != nullptr ? guest->describe(where, text) : where + text);
}

}  // namespace

engine::gradient_table gathered_by_burst(context_id context) {
  const auto* const work = support::call_scope::burst_of(context);
  if (work == nullptr) return {};
  const checked_lock lock(work->state->leaves_mutex);
  return work->state->leaves;
}

at::Tensor gathered_by_burst(context_id context, const at::Tensor& leaf) {
  const auto* const work = support::call_scope::burst_of(context);
  if (work == nullptr) return {};
  const checked_lock lock(work->state->leaves_mutex);
  return work->state->leaves.find(leaf);
}

void run_burst(burst& work, const burst_services& here) {
  support::call_scope in_context(here.self.id(), work.context, {});
  in_context.run_pass(work, [&state = *work.state] { return state.task ? state.task->place_now() : program_place{}; });
  std::optional<support::anomaly_scope> anomaly;
  std::optional<engine::same_streams> as_the_caller;
  std::shared_ptr<void> in_guest;
  std::uint64_t before = 0;
  try {
    auto& state = *work.state;
    if (state.streams) as_the_caller.emplace(*state.streams);
    if (state.guest) in_guest = state.guest->enter();
    if (!state.task) {
      // The graph task of this pass may have been set up while the last burst of an earlier pass still ran on this node. The
      // recordings of that burst are complete only now.
      if (!work.outcome) state.settings.recordings = state.record->recordings();
      const auto& recordings = state.settings.recordings;
      state.anomaly = std::any_of(recordings.begin(), recordings.end(), [](const auto& each) { return !each.calls.empty(); });
      state.outlet = std::make_unique<gradient_outlet>(here);
      state.settings.emit_to = state.outlet.get();
      state.settings.leaves = &state.leaves;
      state.settings.leaves_mutex = &state.leaves_mutex;
      state.settings.recorder = &state.recorder;
      state.settings.of_guest = state.guest.get();
      state.task.emplace(std::move(state.settings));
    }
    before = state.task->functions_begun();
    anomaly.emplace(state.anomaly);
    state.recorder.pass = work.program;
    auto& outlet = static_cast<gradient_outlet&>(*state.outlet);
    outlet.bind(work);
    if (work.what == burst::kind::run) {
      run_functions(work, *state.task, here);
      outlet.tell_context(nullptr, here.self.id());
    } else {
      walk(work, *state.task);
    }
  } catch (const std::exception& reason) {
    work.failure = describe(reason, work, here.self.name());
  } catch (...) {
    work.failure =
      error(errc::function_failed, "backward on node '" + here.self.name() + "' failed: an exception of unknown type");
  }
  if (work.state->task) work.functions = work.state->task->functions_begun() - before;
  if (work.failure && work.state->task) work.state->task->abandon();
}

}  // namespace troupe::passes
