// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/gateway_actor.hpp>

#include <optional>
#include <utility>

#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/stateful_actor.hpp>

#include <troupe/actors/calls/calling_desk.hpp>
#include <troupe/actors/calls/serving_desk.hpp>
#include <troupe/actors/calls/worker_desk.hpp>
#include <troupe/actors/network/handing_over.hpp>
#include <troupe/actors/nodes/news_desk.hpp>
#include <troupe/actors/nodes/node_services.hpp>
#include <troupe/actors/nodes/status_desk.hpp>
#include <troupe/actors/passes/routing_desk.hpp>
#include <troupe/actors/services/note_refusal.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/transfers/transfer_desk.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/inspect.hpp>
#include <troupe/messages/read_errors.hpp>

namespace troupe::nodes {

namespace {

/// The desks of a `gateway` actor. The actor binds each message to a desk.
struct gateway_desks {
  gateway_desks(support::desk_actor self, node_services& services, const contracts::membership_actor& membership)
      : directory(services.directory),
        transfers(self, services, services.memory_readers),
        contexts(
          self, services, services.contexts,
          [&rights = services.rights](node_id who, const context_id& id) { return rights.takes_part(who, id); },
          [this](const context_id& id) {
            calling.context_closed(id);
            workers.context_closed(id);
          }),
        calling(self, services, membership, services.contexts, services.calls, transfers),
        workers(self, services, services.workers, transfers),
        serving(self, services, membership, services.rights, contexts, workers),
        status(self, services, membership, workers),
        members(self, services, membership, contexts, [this](const contracts::peer_down& news) { went_down(news); }) {}

  void went_down(const contracts::peer_down& news) {
    transfers.went_down(news.who.id);
    serving.went_down(news.who.id);
    status.went_down(news.who.id);
    calling.went_down(news);
    workers.went_down(news);
    contexts.went_down(news);
  }

  contracts::gateway_actor::behavior_type handlers();

  membership::peer_directory& directory;
  transfers::transfer_desk transfers;
  passes::routing_desk contexts;
  calls::calling_desk calling;
  calls::worker_desk workers;
  calls::serving_desk serving;
  status_desk status;
  news_desk members;
};

struct gateway_state {
  static inline const char* name = "gateway";
  std::optional<gateway_desks> desks;
};

contracts::gateway_actor::behavior_type gateway_desks::handlers() {
  // CAF tries one handler after the other: the frequent messages come first.
  return {
    [this](call_request& request) { return serving.serve(request); },
    [this](const contracts::outgoing_call_ptr& job) { calling.call(job); },
    [this](const contracts::incoming_call_ptr& job) { workers.done(job); },
    [this](propagate_gradients& message) { contexts.gradients(message); },
    [this](participant_quiet& message) { contexts.report(message); },
    [this](heartbeat& sign) { return members.pass_on<heartbeat_seen>(std::move(sign)); },
    [this](hello& greeting, caf::strong_actor_ptr& gateway) { return members.greet(greeting, gateway); },
    [this](farewell& news) { return members.pass_on<void>(std::move(news)); },
    [this](gossip& news) { return members.pass_on<void>(std::move(news)); },
    [this](participant_failed& message) { contexts.report(message); },
    [this](discover& question) { return contexts.walk(question); },
    [this](prune& message) { contexts.leave_out(message); },
    [this](abort_pass& message) { return contexts.abort(message); },
    [this](const context_joined& news) { contexts.joined(news); },
    [this](const held_objects& news) { members.settle(news); },
    [this](const release_context& message) { return contexts.release(message); },
    [this](support::status_atom) { return status.own(); },
    [this](support::status_atom, support::outline_atom) { return status.outline(); },
    [this](support::status_atom, std::uint64_t who, std::int64_t left_ns) { return status.of_peer(node_id{who}, left_ns); },
    [this](support::find_atom, const std::string& name) { return status.find_published(name); },
    [this](const tensor_piece& piece) { return transfers.came(piece); },
    [this](const tensor_offer& offer) { return transfers.read(offer); },
    [this](const request_mark& from) { return transfers.draw_mark(from); },
    [this](support::close_atom, const context_id& id, const contracts::context_actor& actor) { contexts.release(id, actor); },
    [this](const contracts::outgoing_joint_ptr& joint) { contexts.add(*joint); },
    [this](support::deadline_atom, const contracts::outgoing_call_ptr& job) { calling.deadline_passed(job); },
    [this](support::deadline_atom, const contracts::incoming_call_ptr& job) { workers.deadline_passed(job); },
    [this](support::leave_atom, const contracts::incoming_call_ptr& job) { workers.left_series(job); },
    [this](support::arrived_atom, const contracts::outgoing_call_ptr& job) { calling.arrived(job); },
    [this](const contracts::outgoing_gradients_ptr& what) { transfers.send(what); },
    [this](support::capacity_atom, const contracts::capacity_wish_ptr& what) { transfers.wish(what); },
    [this](const contracts::incoming_offer_ptr& job) { transfers.was_read(*job); },
    [this](const contracts::host_copy_ptr& what) { transfers.was_copied(*what); },
    [this](support::free_atom, const contracts::call_worker_actor& worker, std::uint32_t depth) {
      workers.is_free(worker, depth);
    },
    [this](support::tick_atom) { workers.end_idle(); },
    [this](support::blocked_atom) { workers.is_blocked(); },
    [this](support::resumed_atom) { workers.is_resumed(); },
    [this](contracts::peer_up& news) { members.is_up(news); },
    [this](const contracts::peer_down& news) { members.went_down(news); },
    [this](const contracts::member_heard& news) { members.heard(news); },
    [this](const contracts::member_out_of_reach& news) { directory.traffic.note_obstacle(news.who, news.reason); },
  };
}

caf::result<caf::message> refuse_unknown(uses<with_log, with_counts> here, const caf::mailbox_element& came) {
  caf::error why = take_read_error({came.sender ? came.sender->id() : 0, came.mid.integer_value()});
  if (!why) why = take_read_error();  // on CAF's own network a read error has no sender and no number
  if (why && to_exception(why).code() == errc::refused) services::note_refusal(here, to_exception(why).what(), came.sender);
  return why ? why : make_error(errc::malformed_message, "a node takes no message of this type");
}

class gateway final : public contracts::gateway_actor::stateful_broker_base<gateway_state> {
  using broker = contracts::gateway_actor::stateful_broker_base<gateway_state>;

 public:
  gateway(caf::actor_config& config, node_services& services, const contracts::membership_actor& membership)
      : broker(config), services_(services), membership_(membership) {}

  using broker::enqueue;
  /// A message that a connection hands over is handled here at once, unless another message waits: then the message goes to the
  /// mailbox. mailbox().blocked() is true while the mailbox is empty and resume() does not run, so also during activate(). So
  /// no handler may make a connection hand over a message.
  void enqueue(caf::mailbox_element_ptr came, caf::execution_unit* unit) override {
    const auto& what = came->content();
    const bool is_news_of_caf = what.match_elements<caf::down_msg>() || what.match_elements<caf::exit_msg>();
    if (!network::handing_over::is_now() || is_news_of_caf || !mailbox().blocked())
      return broker::enqueue(std::move(came), unit);
    const network::handing_over is_over(false);  // messages that the handlers send go to mailboxes
    activate(&backend(), *came);
  }

 protected:
  behavior_type make_behavior() override {
    support::close_mailbox_at_exit(this);
    // Contexts and passes end with the gateway, because they are linked to it. The gateway does not end with them.
    set_exit_handler([](caf::scheduled_actor* own, caf::exit_msg& news) {
      if (news.reason == caf::exit_reason::user_shutdown) own->quit(news.reason);
    });
    set_default_handler([here = uses<with_log, with_counts>(services_)](caf::scheduled_actor* own, caf::message_view&) {
      return refuse_unknown(here, *own->current_mailbox_element());
    });
    return state.desks.emplace(this, services_, std::exchange(membership_, {})).handlers();
  }

 private:
  node_services& services_;
  // Moves to the desks, which are destroyed when the actor ends. If the handle stayed here, gateway and membership would keep
  // each other alive for ever.
  contracts::membership_actor membership_;
};

}  // namespace

contracts::gateway_actor spawn_gateway(node_services& services, const contracts::membership_actor& membership) {
  auto& system = *services.actors.system;
  caf::actor_config config{&system.middleman().backend()};
  return system.spawn_class<gateway, caf::no_spawn_options>(config, services, membership);
}

}  // namespace troupe::nodes
