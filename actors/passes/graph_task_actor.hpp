// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/support/shared_life_test.cpp
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/duration.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/gate/known_peers.hpp>
#include <troupe/actors/passes/burst.hpp>
#include <troupe/actors/passes/pass_services.hpp>
#include <troupe/actors/passes/pass_terms.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/participant.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::passes {

/// How long the initiator waits for the answers to an abort. The pass ends without the answer of a node that takes longer.
inline constexpr std::chrono::milliseconds abort_deadline{1000};

/// The handlers of a graph task. protocol::participant decides for this node in the pass and, on the node that started
/// the pass, protocol::initiator about the whole pass. The desk carries out what the two decide, and holds the tensors.
class graph_task_desk {
 public:
  graph_task_desk(support::desk_actor self, const task_services& here, pass_terms_ptr terms);
  ~graph_task_desk();
  graph_task_desk(const graph_task_desk&) = delete;
  graph_task_desk& operator=(const graph_task_desk&) = delete;

  void start();
  void gradients(propagate_gradients& message);
  void quiet(participant_quiet& message);
  void failed(participant_failed& message);
  caf::typed_response_promise<discovered> discover(const troupe::discover& question);
  void leave_out(prune& message);
  caf::typed_response_promise<pass_aborted> abort();
  void returned(burst& work);
  void peer_down(const contracts::peer_down& news);
  caf::typed_response_promise<contracts::table_ptr> hand_out();
  void deadline_passed();
  void close();

 private:
  using participant = protocol::participant;
  using lead = protocol::initiator;

  template <class Effects>
  void act(Effects effects);

  // Effects of the participant.
  void carry_out(participant::run_burst& what);
  void carry_out(participant::run_walk& what);
  void carry_out(const participant::stop_burst&);
  void carry_out(participant::report_quiet& what);
  void carry_out(participant::report_failure& what);
  void carry_out(participant::answer_discover& what);
  void carry_out(const participant::answer_walk& what);
  void carry_out(participant::answer_abort& what);
  void carry_out(const participant::tell_senders& what);
  void carry_out(const participant::hand_out&);
  void carry_out(const participant::end&);

  // Effects of the initiator.
  void carry_out(const lead::walk_roots&);
  void carry_out(lead::ask_discover& what);
  void carry_out(lead::send_prune& what);
  void carry_out(const lead::ask_abort& what);
  void carry_out(const lead::await_aborts&);
  void carry_out(const lead::name_unused& what);
  void carry_out(const lead::complete& what);

  void fail(node_id from, errc code, std::string text);
  participant::sender sender_of(const propagate_gradients& message);
  void send_burst(burst::kind what, protocol::burst_share share, std::vector<message_id>&& sends,
                  std::vector<burst::delivery>&& deliveries);
  void drop_buffers();
  contracts::gateway_actor reach(node_id who);
  template <class Question, class Answered, class Failed>
  bool ask(node_id who, caf::duration limit, Question question, Answered answered, Failed no_answer);
  void is_down(node_id who);
  std::string names_of(const std::vector<node_id>& nodes) const;
  contracts::graph_task_actor me() const { return self_.handle<contracts::graph_task_actor>(); }

  support::desk_actor self_;
  const task_services here_;
  gate::own_actors::hold guard_;  // other nodes can send this actor only answers
  pass_terms_ptr terms_;
  participant participant_;
  std::optional<lead> lead_;
  std::vector<burst::delivery> deliveries_;  // for the next burst
  std::set<std::string> not_up_yet_;         // nodes that sent gradients before they were up here
  std::vector<caf::typed_response_promise<discovered>> discovers_;
  std::vector<caf::typed_response_promise<pass_aborted>> aborts_;
  std::optional<caf::typed_response_promise<contracts::table_ptr>> table_;
  support::deadline_clock::alarm expiry_;
};

/// Sets the reserved alarm. The alarm tells the graph task that the deadline of the pass has passed.
void set_deadline(support::deadline_clock& clock, const contracts::graph_task_actor& task,
                  const support::deadline_clock::alarm& reserved);

/// Spawns the graph task: a broker in the network threads.
contracts::graph_task_actor spawn_graph_task(const task_services& here, pass_terms_ptr terms);

}  // namespace troupe::passes
