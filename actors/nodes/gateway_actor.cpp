// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/gateway_actor.hpp>

#include <algorithm>
#include <utility>

#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/nodes/calling_shell.hpp>
#include <troupe/actors/nodes/room_shell.hpp>
#include <troupe/actors/nodes/routing_shell.hpp>
#include <troupe/actors/nodes/serving_shell.hpp>
#include <troupe/actors/nodes/status_shell.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/support/exception_text.hpp>
#include <troupe/actors/transfers/read_offers.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/inspect.hpp>
#include <troupe/messages/read_errors.hpp>

namespace troupe::nodes {

namespace {

// Deeply nested calls make many workers. When the calls are over, at most this many idle workers stay.
constexpr std::size_t most_idle_workers = 16;
// A call that waits for another call keeps its thread. Beyond this number of threads for a depth, further calls of the depth wait.
constexpr std::size_t most_calls_of_depth = 256;

// A caller holds calls back beyond its send limit, for each depth of nested calls. So many times that limit may wait here: a caller that
// is no node of troupe's might hold nothing back.
constexpr std::uint64_t calls_in_queue = 4;
constexpr std::uint64_t least_send_limit = std::uint64_t{256} << 20;

/// Hands a message of another node to the membership, which answers with an `Answer`.
template <class Answer, class Self, class... Ts>
caf::result<Answer> pass_on(Self self, Ts&&... message) {
  const auto& membership = self->state.membership;
  if (membership) return self->delegate(membership, std::forward<Ts>(message)...);
  return make_error(errc::misuse, "node '" + self->state.here->name() + "' has no network and no membership");
}

template <class Self>
caf::error refuse_gateway(Self self, const hello& greeting) {
  auto why = "the greeting of node '" + greeting.name + "' names as its gateway an actor of another node";
  note_refusal(*self->state.here, why, self->current_sender());
  return make_error(errc::refused, std::move(why));
}

template <class Self>
caf::result<caf::strong_actor_ptr> find_published(Self self, const std::string& name) {
  const gateway_shell sh(self);
  if (auto refused = sh.why_not_asked(&rights::role_rights::actors, "look for published actors")) return refused;
  if (auto found = sh.parts.published.find(name)) return found;
  return make_error(errc::unknown_function, "node '" + sh.here.name() + "' has published no actor '" + name + "'");
}

template <class Self>
void went_down(Self self, const contracts::peer_down& news) {
  const gateway_shell sh(self);
  const auto id = news.who.id;
  const bool was_up = sh.here.directory().gateway(id) != nullptr;
  sh.here.directory().remove(id, news.period, news.reason, news.is_gone);
  sh.state.direct.forget(id);
  sh.state.leaving.erase(id);
  sh.state.windows.erase(id);
  sh.state.answers.forget(id);
  sh.state.asked.fail(self->ctrl(), id, make_error(errc::peer_down, "it went down"));
  if (sh.here.networked()) sh.here.arriving().drop(id);
  calling_shell(self).went_down(news);
  refuse_waiting(self, sh.state.waiting.from(id), error(errc::peer_down, "its caller went down (" + news.reason + ")"));
  routing_shell(self).went_down(news);
  auto* objects = &sh.parts.objects;
  if (news.is_gone)
    self->send(sh.here.continuation(), contracts::garbage_ptr{nullptr, [objects, id](void*) { objects->drop_owned_by(id); }});
  if (was_up) sh.parts.on_peer_down.tell(news.who.name, news.reason);
  if (!news.is_gone) return;
  sh.here.residuals().forget(id);
  sh.parts.on_peer_gone.tell(news.who.name, news.reason);
  sh.parts.on_left.tell(news.who.name, news.reason);
}

template <class Self>
void is_up(Self self, contracts::peer_up& news) {
  const gateway_shell sh(self);
  const auto id = news.who.id;
  const bool was_known = !news.again && sh.here.directory().is_member(id);
  sh.here.directory().add(news.who, std::move(news.gateway), news.period);
  const auto gateway = sh.here.directory().gateway(id);
  if (!gateway) return;
  if (news.again) {
    routing_shell(self).is_up_again(id);
    caf::anon_send(gateway, held_objects{sh.here.id(), sh.parts.objects.tether()->held_of(id)});
  }
  if (!news.again)
    if (const auto problem = sh.here.maps().problem(news.who.name, id); !problem.empty())
      sh.here.log().warn("nodes", [&] { return problem + "; calls to it fail until the map is mended"; });
  if (!was_known) sh.parts.on_peer_up.tell(news.who.name, {});
}

// Other nodes say that a member is up, or is not up any more. This node is not connected to the member.
template <class Self>
void heard(Self self, const contracts::member_heard& news) {
  const gateway_shell sh(self);
  const auto& name = news.who.name;
  if (news.is_up) {
    if (sh.here.directory().know(news.who)) sh.parts.on_peer_up.tell(name, {});
    return;
  }
  if (sh.here.directory().forget(news.who.id, news.reason, news.is_gone)) sh.parts.on_peer_down.tell(name, news.reason);
  if (!news.is_gone) return;
  sh.parts.on_peer_gone.tell(name, news.reason);
  sh.parts.on_left.tell(name, news.reason);
}

// For another node, this node is up again. The other node names the objects that it holds; calls that were to drop other objects
// were lost. For this node, the other node may still be unreachable: then is_up() names the contexts once more.
template <class Self>
void settle(Self self, const held_objects& news) {
  const gateway_shell sh(self);
  sh.here.discard(sh.parts.objects.settle(news.from, news.numbers));
  routing_shell(self).is_up_again(news.from);
}

}  // namespace

gateway_state::~gateway_state() {
  for (const auto& [context, open] : std::exchange(calls, {}))
    for (const auto& job : open) parts->calls.fail(*job, error(errc::stopping, "this node stopped before it was answered"));
}

template <class Self>
contracts::gateway_actor::behavior_type make_gateway(Self self, node_parts* parts,
                                                     const contracts::membership_actor& membership) {
  support::close_mailbox_at_exit(self);
  self->state.membership = membership;
  self->state.parts = parts;
  self->state.here = &parts->services;
  // Contexts and passes end with the gateway, because they are linked to it. The gateway does not end with them.
  self->set_exit_handler([](caf::scheduled_actor* own, caf::exit_msg& news) {
    if (news.reason == caf::exit_reason::user_shutdown) own->quit(news.reason);
  });
  self->set_default_handler(
    [&here = parts->services](caf::scheduled_actor* own, caf::message_view&) -> caf::result<caf::message> {
      const auto* came = own->current_mailbox_element();
      caf::error why = take_read_error({came->sender ? came->sender->id() : 0, came->mid.integer_value()});
      if (!why) why = take_read_error();  // CAF's own network tells no numbers
      if (why && to_exception(why).code() == errc::refused) note_refusal(here, to_exception(why).what(), came->sender);
      return why ? why : make_error(errc::malformed_message, "a node takes no message of this type");
    });
  self->state.pool = calls::call_pool<contracts::call_worker_actor, contracts::incoming_call_ptr>(
    parts->services.options().workers, most_idle_workers, most_calls_of_depth);
  const auto send_limit = parts->services.options().send_limit;
  self->state.answers = calls::answers_under_way(send_limit);
  self->state.queued.emplace(calls_in_queue * std::max(send_limit, least_send_limit));
  return {
    [=](hello& greeting, caf::strong_actor_ptr& gateway) -> caf::result<welcome> {
      // Otherwise the greeting node could make this node take the actors of a third one for its own, and end that node's connection.
      if (const auto& sender = self->current_sender();
          gateway != nullptr && (sender == nullptr || sender->node() != gateway->node()))
        return refuse_gateway(self, greeting);
      return pass_on<welcome>(self, std::move(greeting), std::move(gateway));
    },
    [=](heartbeat& sign) -> caf::result<heartbeat_seen> { return pass_on<heartbeat_seen>(self, std::move(sign)); },
    [=](farewell& news) { return pass_on<void>(self, std::move(news)); },
    [=](gossip& news) { return pass_on<void>(self, std::move(news)); },
    [=](call_request& request) { return serving_shell(self).serve(request); },
    [=](propagate_gradients& message) { routing_shell(self).gradients(message); },
    [=](participant_quiet& message) { routing_shell(self).report(message); },
    [=](participant_failed& message) { routing_shell(self).report(message); },
    [=](discover& question) { return routing_shell(self).walk(question); },
    [=](prune& message) { routing_shell(self).leave_out(message); },
    [=](abort_pass& message) { return routing_shell(self).abort(message); },
    [=](const context_joined& news) { routing_shell(self).joined(news); },
    [=](const held_objects& news) { settle(self, news); },
    [=](const release_context& message) { return routing_shell(self).release(message); },
    [=](support::status_atom) { return status_shell(self).own(); },
    [=](support::status_atom, support::outline_atom) { return status_shell(self).outline(); },
    [=](support::status_atom, std::uint64_t who, std::int64_t left_ns) {
      return status_shell(self).of_peer(node_id{who}, left_ns);
    },
    [=](support::find_atom, const std::string& name) { return find_published(self, name); },
    [=](const tensor_piece& piece) { return transfers::piece_came(self, piece); },
    [=](const tensor_offer& offer) { return transfers::read_offer(self, offer); },
    [=](const request_mark& from) { return transfers::draw_mark(self, from); },
    [=](support::close_atom, const context_id& id, const contracts::context_actor& actor) {
      routing_shell(self).release(id, actor);
    },
    [=](const contracts::outgoing_call_ptr& job) { calling_shell(self).call(job); },
    [=](const contracts::outgoing_joint_ptr& joint) { routing_shell(self).add(*joint); },
    [=](support::deadline_atom, const contracts::outgoing_call_ptr& job) { calling_shell(self).deadline_passed(job); },
    [=](support::deadline_atom, const contracts::incoming_call_ptr& job) { serving_shell(self).deadline_passed(job); },
    [=](support::arrived_atom, const contracts::outgoing_call_ptr& job) { calling_shell(self).arrived(job); },
    [=](const contracts::outgoing_gradients_ptr& what) { calling_shell(self).gradients_leave(what); },
    [=](support::room_atom, const contracts::room_wish_ptr& what) { room_shell(self).wish(what); },
    [=](const contracts::incoming_call_ptr& job) { serving_shell(self).done(job); },
    [=](const contracts::incoming_offer_ptr& job) { transfers::offer_read(self, *job); },
    [=](support::free_atom, const contracts::call_worker_actor& worker, std::uint32_t depth) {
      serving_shell(self).worker_is_free(worker, depth);
    },
    [=](support::tick_atom) { serving_shell(self).end_idle_workers(); },
    [=](support::blocked_atom) { serving_shell(self).worker_is_blocked(); },
    [=](support::resumed_atom) { self->state.pool.resumed(); },
    [=](contracts::peer_up& news) { is_up(self, news); },
    [=](const contracts::peer_down& news) { went_down(self, news); },
    [=](const contracts::member_heard& news) { heard(self, news); },
    [=](const contracts::member_out_of_reach& news) {
      gateway_shell(self).here.directory().note_obstacle(news.who, news.reason);
    },
  };
}

contracts::gateway_actor spawn_gateway(node_parts& parts, const contracts::membership_actor& membership) {
  auto& system = parts.services.system();
  if (parts.services.networked())
    return system.middleman().spawn_broker(make_gateway<contracts::gateway_actor::stateful_broker_pointer<gateway_state>>,
                                           &parts, membership);
  return system.spawn(make_gateway<contracts::gateway_actor::stateful_pointer<gateway_state>>, &parts, membership);
}

}  // namespace troupe::nodes
