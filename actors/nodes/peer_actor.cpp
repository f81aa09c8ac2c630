// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/peer_actor.hpp>

#include <type_traits>
#include <utility>

#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/calls/call_worker.hpp>
#include <troupe/actors/passes/context_actor.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/services/timed_request.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/actors/support/exception_text.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/transfers/read_offers.hpp>
#include <troupe/actors/transfers/ship.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/inspect.hpp>

namespace troupe::nodes {

namespace {

// Nodes of one cluster get to know each other in milliseconds.
constexpr std::chrono::milliseconds meeting_patience{2000};

constexpr std::chrono::milliseconds shortest_limit{1};

// Threads of calls that were nested deeply and are over.
constexpr std::size_t most_idle_workers = 16;

template <class Self>
struct peer_shell {
  Self self;
  peer_state& state;
  node_parts& parts;
  services::node_services& here;

  explicit peer_shell(Self s) : self(s), state(s->state), parts(*s->state.parts), here(*s->state.here) {}

  passes::open_context find(const context_id& id) {
    auto found = state.contexts.find(id);
    if (found != state.contexts.end()) return found->second;
    if (id.node != here.id()) return {};
    auto opened = parts.contexts.find(id);  // opened on another thread
    if (opened.actor) state.contexts.emplace(id, opened);
    return opened;
  }

  passes::open_context find_or_open(const context_id& id, node_id by) {
    auto known = find(id);
    if (!known.actor && by.value != 0 && !here.directory().face(by)) return known;  // PE-5
    if (known.actor || id.node == here.id() || state.released.contains(id) || !here.directory().face(id.node)) return known;
    known.record = std::make_shared<passes::context_record>(id, here.id(), here.counts());
    known.actor = passes::spawn_context(here, known.record);
    if (!parts.contexts.know(known)) return {};
    state.contexts.emplace(id, known);
    return known;
  }

  /// A node that has just joined may be called in the context of one that it has not met yet.
  bool will_meet(node_id who) const {
    return who != node_id{} && who != here.id() && state.membership && !here.directory().face(who) &&
           !here.directory().is_down(who);
  }

  passes::open_context context_of(const contracts::incoming_call& job) {
    const auto& payload = job.request.payload;
    return payload.context ? find_or_open(payload.context, payload.message.node) : passes::open_context{};
  }

  void call_came(const contracts::incoming_call_ptr& job) {
    const auto opener = job->request.payload.context.node;
    const auto context = context_of(*job);
    if (!context.actor && will_meet(opener))
      take_call_when_met(opener, job);
    else
      take_call(job, context);
  }

  void take_call(const contracts::incoming_call_ptr& job, const passes::open_context& context) {
    const auto id = job->request.payload.context;
    if (id && !context.actor) {
      job->promise.deliver(no_context(id));
      return;
    }
    job->record = context.record;
    if (id && !context.record->take_news(job->request))
      self->send(context.actor, job);
    else
      run(job);
  }

  void take_call_when_met(node_id who, const contracts::incoming_call_ptr& job) {
    const auto take = [s = self, job] {
      peer_shell sh(s);
      sh.take_call(job, sh.context_of(*job));
    };
    self
      ->request(state.membership, meeting_patience + std::chrono::seconds(1), support::find_atom::value, who,
                std::int64_t{std::chrono::nanoseconds(meeting_patience).count()})
      .then(
        [s = self, take](contracts::peer_up& met) {
          peer_shell(s).here.directory().add(met.who, std::move(met.face));
          take();
        },
        [take](const caf::error&) { take(); });
  }

  /// Forgets the context and remembers that it was released.
  contracts::context_actor close(const context_id& id) {
    auto known = find(id).actor;
    state.contexts.erase(id);
    parts.contexts.forget(id);
    if (id.node != here.id()) state.released.add(id);  // its own it opens itself, once
    if (auto lost = state.calls.extract(id))
      fail_calls(lost.mapped(), error(errc::unknown_context, "its context was released before it was answered"));
    return known;
  }

  caf::error no_context(const context_id& id) {
    const auto why = parts.contexts.unknown(id);
    return make_error(why.code(), why.what());
  }

  /// Hands a message of a pass to its context. Without one it tells the initiator, or, when that is down for this node alone,
  /// the sender, which can.
  template <class Message>
  void route(Message& message) {
    if (auto context = find(message.context).actor) {
      self->send(context, std::move(message));
      return;
    }
    if (message.context.node == here.id()) return;
    auto face = here.directory().face(message.context.node);
    if constexpr (std::is_same_v<Message, propagate_gradients>)
      if (!face) face = here.directory().face(message.from);
    if (!face) return;
    self->send(caf::actor_cast<contracts::peer_actor>(face),
               participant_failed{message.context, message.pass, here.id(), static_cast<std::uint8_t>(errc::unknown_context),
                                  parts.contexts.unknown(message.context).what()});
  }

  /// A node may hold a part of this one's context unknown to us, as who called it there went down; or one that is cut off from
  /// the context's node asks us to say that we do.
  void joined(const context_joined& news) {
    auto face = here.directory().face(news.from);
    if (auto context = find(news.context).actor)
      self->send(context, news);
    else if (face && news.context.node == here.id())
      caf::anon_send(caf::actor_cast<contracts::peer_actor>(face), release_context{news.context});
  }

  node_status status() {
    node_status result;
    result.self = here.self();
    result.uptime_ns = here.uptime_ns();
    here.counts().fill(result);
    result.calls_queued = state.pool.waiting();
    result.objects = parts.objects.size();
    result.peers = here.directory().traffic(here.id());
    std::unordered_map<node_id, std::uint64_t> opened;
    for (const auto& [context, actor] : state.contexts) ++opened[context.node];
    for (auto& each : result.peers) each.contexts = opened[each.who.id];
    return result;
  }

  void call(const contracts::outgoing_call_ptr& job) {
    const auto& context = job->request.payload.context;
    if (context && !find(context).actor) return parts.calls.fail(*job, parts.contexts.unknown(context));
    if (!here.directory().face(job->to)) return parts.calls.fail(*job, error(errc::peer_down, "it is down"));
    state.calls[context].insert(job);
    state.late.hold(job) ? limit(job) : leave(job);
  }

  /// Fails the call at its deadline, if it has not left by then.
  void limit(const contracts::outgoing_call_ptr& job) {
    job->expiry =
      here.deadlines().set(job->deadline, [me = caf::actor_cast<caf::weak_actor_ptr>(contracts::peer_actor{self}), job] {
        if (auto strong = me.lock())
          caf::anon_send(caf::actor_cast<contracts::peer_actor>(strong), support::deadline_atom::value, job);
      });
  }

  /// The elements of its tensors are there, or are not to be had.
  void arrived(const contracts::outgoing_call_ptr& job) {
    const auto ready = state.late.arrived(job);
    if (job->not_copied && ended(job)) fail(job, *job->not_copied);
    leave(ready);
  }

  void leave(const std::vector<contracts::outgoing_call_ptr>& ready) {
    for (const auto& job : ready)
      if (is_open(job)) leave(job);
  }

  void leave(const contracts::outgoing_call_ptr& job) {
    auto& payload = job->request.payload;
    if (!transfers::goes_ahead(here, job->to, payload.tensors)) return request(job);
    if (!job->is_limited()) limit(job);
    transfers::ship(self, job->to, payload.tensors, payload.ahead, [s = self, job] {
      peer_shell sh(s);
      job->ended ? transfers::call_off(sh.here, job->to, job->request.payload.ahead) : sh.request(job);
    });
  }

  void request(const contracts::outgoing_call_ptr& job) {
    auto face = here.directory().face(job->to);
    if (!face) return;  // its peer_down is on its way, and fails the call
    auto limit = job->deadline;
    if (job->is_limited()) {
      here.deadlines().call_off(job->expiry);
      limit -=
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(support::steady_ns() - job->begin_ns));
    }
    auto answered = [s = self, job](call_result& result) {
      peer_shell sh(s);
      job->asked = std::nullopt;
      if (!sh.ended(job)) return;
      if (job->record) job->record->joined(result.participants);
      sh.parts.calls.finish(*job, result);
    };
    auto failed = [s = self, job](const caf::error& reason) {
      peer_shell sh(s);
      job->asked = std::nullopt;
      if (sh.ended(job)) sh.fail(job, to_exception(reason));
    };
    const auto question = services::timed_request(self, here, caf::actor_cast<contracts::peer_actor>(face),
                                                  std::max(limit, shortest_limit), job->expiry, job->request);
    job->asked = question.id();
    question.then(answered, failed);
    job->request.payload.tensors.clear();
  }

  bool is_open(const contracts::outgoing_call_ptr& job) const {
    const auto found = state.calls.find(job->request.payload.context);
    return found != state.calls.end() && found->second.contains(job);
  }

  /// False if it had ended already.
  bool ended(const contracts::outgoing_call_ptr& job) {
    here.deadlines().call_off(job->expiry);
    auto found = state.calls.find(job->request.payload.context);
    if (found == state.calls.end() || found->second.erase(job) == 0) return false;
    if (found->second.empty()) state.calls.erase(found);
    return true;
  }

  /// Pre: it is no longer among the open calls.
  void fail(const contracts::outgoing_call_ptr& job, const error& reason) {
    here.deadlines().call_off(job->expiry);
    parts.calls.fail(*job, reason);
    if (const auto question = std::exchange(job->asked, std::nullopt))
      support::end_request(self, *question, make_error(reason.code(), reason.what()));
    leave(state.late.ended(*job));
  }

  void fail_calls(const std::unordered_set<contracts::outgoing_call_ptr>& calls, const error& reason) {
    for (const auto& job : calls) fail(job, reason);
  }

  void run(contracts::incoming_call_ptr job) {
    state.pool.add(std::move(job));
    start_calls();
  }

  void start_calls() {
    while (auto next = state.pool.next()) {
      const auto worker = worker_for(*next);
      if (!worker) continue;
      const auto& request = next->call->request;
      auto run = [around = parts.workers.surroundings(), call = next->call, worker] {
        calls::serve_call(call, around, worker);
      };
      auto send = [call = next->call, worker] { caf::anon_send(worker, call); };
      if (!here.run_soon(calls::label_of(request.function, request.values), std::move(run), send)) send();
    }
  }

  /// None if there is none: the call has failed then.
  contracts::call_worker_actor worker_for(
    calls::call_pool<contracts::call_worker_actor, contracts::incoming_call_ptr>::start& next) {
    if (next.worker) return std::move(*next.worker);
    try {
      return parts.workers.spawn();
    } catch (const error& none) {
      state.pool.not_started();
      next.call->promise.deliver(make_error(none.code(), none.what()));
      return {};
    }
  }

  void worker_is_free(const contracts::call_worker_actor& worker) {
    state.pool.idle(worker);
    start_calls();
    while (const auto surplus = state.pool.surplus()) parts.workers.let_go(*surplus);
  }

  void call_done(const contracts::incoming_call_ptr& job) {
    if (job->failure) {
      job->promise.deliver(make_error(job->failure->code(), job->failure->what()));
      return;
    }
    auto deliver = [job] { job->promise.deliver(std::move(job->result)); };
    auto& payload = job->result.payload;
    const auto caller = job->request.payload.message.node;
    transfers::goes_ahead(here, caller, payload.tensors)
      ? transfers::ship(self, caller, payload.tensors, payload.ahead, deliver)
      : deliver();
  }

  void gradients_leave(const contracts::outgoing_gradients_ptr& what) {
    auto send = [s = self, what] {
      if (const auto face = peer_shell(s).here.directory().face(what->to))
        caf::anon_send(caf::actor_cast<contracts::peer_actor>(face), std::move(what->message));
    };
    auto& message = what->message;
    transfers::goes_ahead(here, what->to, message.gradients)
      ? transfers::ship(self, what->to, message.gradients, message.ahead, send)
      : send();
  }

  void went_down(contracts::peer_down& news) {
    auto id = news.who.id;
    here.directory().remove(id);
    state.direct.forget(id);
    state.leaving.erase(id);
    for (const auto question : state.asked.take(id))
      support::end_request(self, question, make_error(errc::peer_down, "it went down"));
    if (here.networked()) here.arriving().drop(id);
    std::unordered_set<contracts::outgoing_call_ptr> lost;
    for (const auto& [context, calls] : state.calls)
      for (const auto& job : calls)
        if (job->to == id) lost.insert(job);
    for (const auto& job : lost) ended(job);
    fail_calls(lost, error(errc::peer_down, "it went down (" + news.reason + ")"));
    for (auto& each : parts.contexts.all()) state.contexts.emplace(each.record->id(), std::move(each));
    std::vector<context_id> orphans;
    for (const auto& [context, open] : state.contexts) {
      self->send(open.actor, news);
      if (context.node == id) orphans.push_back(context);
    }
    for (const auto& context : orphans)
      if (auto actor = close(context)) self->send(actor, support::close_atom::value);
    state.released.forget(id);
    auto* objects = &parts.objects;
    self->send(here.continuation(), contracts::garbage_ptr{nullptr, [objects, id](void*) { objects->drop_owned_by(id); }});
    parts.on_peer_down.tell(news);
  }
};

}  // namespace

peer_state::~peer_state() {
  for (const auto& [context, open] : std::exchange(calls, {}))
    for (const auto& job : open) parts->calls.fail(*job, error(errc::stopping, "this node stopped before it was answered"));
}

template <class Self>
contracts::peer_actor::behavior_type make_peer(Self self, node_parts* parts) {
  support::close_mailbox_at_exit(self);
  self->state.parts = parts;
  self->state.here = &parts->services;
  self->set_default_handler([](caf::scheduled_actor*, caf::message_view&) -> caf::result<caf::message> {
    caf::error why = take_read_error();
    return why ? why : make_error(errc::malformed_message, "a peer takes no message of this type");
  });
  self->state.pool = calls::call_pool<contracts::call_worker_actor, contracts::incoming_call_ptr>(
    parts->services.options().workers, most_idle_workers);
  using result_promise = caf::typed_response_promise<call_result>;
  return {
    [=](hello& greeting, caf::strong_actor_ptr& face) {
      return self->delegate(self->state.membership, std::move(greeting), std::move(face));
    },
    [=](heartbeat& sign) { return self->delegate(self->state.membership, std::move(sign)); },
    [=](farewell& news) { self->send(self->state.membership, std::move(news)); },
    [=](call_request& request) -> caf::result<call_result> {
      peer_shell sh(self);
      sh.here.directory().received(request.payload.message.node, request.payload.tensors);
      auto promise = self->template make_response_promise<result_promise>();
      auto job = std::make_shared<contracts::incoming_call>();
      job->request = std::move(request);
      job->promise = promise;
      job->owner = caf::actor_cast<caf::strong_actor_ptr>(self);
      job->arrived_ns = support::steady_ns();
      sh.call_came(job);
      return promise;
    },
    [=](propagate_gradients& message) {
      peer_shell(self).here.directory().received(message.from, message.gradients);
      peer_shell(self).route(message);
    },
    [=](participant_quiet& message) {
      peer_shell(self).here.directory().received(message.from);
      peer_shell(self).route(message);
    },
    [=](participant_failed& message) {
      peer_shell(self).here.directory().received(message.from);
      peer_shell(self).route(message);
    },
    [=](discover& message) -> caf::result<discovered> {
      peer_shell sh(self);
      sh.here.directory().received(message.context.node);
      if (auto context = sh.find(message.context).actor) return self->delegate(context, std::move(message));
      return sh.no_context(message.context);
    },
    [=](prune& message) {
      peer_shell(self).here.directory().received(message.context.node);
      peer_shell(self).route(message);
    },
    [=](abort_pass& message) -> caf::result<pass_aborted> {
      peer_shell sh(self);
      sh.here.directory().received(message.context.node);
      if (auto context = sh.find(message.context).actor) return self->delegate(context, std::move(message));
      return pass_aborted{message.context, message.pass, sh.here.id(), {}};
    },
    [=](const context_joined& news) { peer_shell(self).joined(news); },
    [=](release_context& message) -> caf::result<context_released> {
      peer_shell sh(self);
      if (auto context = sh.close(message.context)) return self->delegate(context, std::move(message));
      return context_released{message.context, sh.here.id()};
    },
    [=](support::status_atom) { return peer_shell(self).status(); },
    [=](support::find_atom, const std::string& name) -> caf::result<caf::strong_actor_ptr> {
      peer_shell sh(self);
      if (auto found = sh.parts.published.find(name)) return found;
      return make_error(errc::unknown_function, "node '" + sh.here.name() + "' has published no actor '" + name + "'");
    },
    [=](const tensor_piece& piece) { transfers::piece_came(self, piece); },
    [=](const tensor_offer& offer) { return transfers::read_offer(self, offer); },
    [=](const request_mark& from) { return transfers::draw_mark(self, from); },
    [=](const contracts::membership_actor& who) { self->state.membership = who; },
    [=](support::close_atom, const context_id& id, const contracts::context_actor& actor) {
      peer_shell(self).close(id);
      self->send(actor, support::close_atom::value);
    },
    [=](contracts::outgoing_call_ptr& job) { peer_shell(self).call(job); },
    [=](support::deadline_atom, const contracts::outgoing_call_ptr& job) {
      peer_shell sh(self);
      if (sh.ended(job)) sh.fail(job, error(errc::deadline_passed, "its tensors did not leave in time"));
    },
    [=](support::arrived_atom, const contracts::outgoing_call_ptr& job) { peer_shell(self).arrived(job); },
    [=](const contracts::outgoing_gradients_ptr& what) { peer_shell(self).gradients_leave(what); },
    [=](contracts::outgoing_joint_ptr& joint) {
      if (auto context = peer_shell(self).find_or_open(joint->context, joint->to); context.record)
        context.record->add(std::move(joint->send), joint->to, std::move(joint->recordings));
    },
    [=](contracts::incoming_call_ptr& job) {
      peer_shell sh(self);
      if (job->owner)
        sh.run(std::move(job));
      else
        sh.call_done(job);
    },
    [=](const contracts::incoming_offer_ptr& job) { transfers::offer_read(self, *job); },
    [=](support::free_atom, const contracts::call_worker_actor& worker) { peer_shell(self).worker_is_free(worker); },
    [=](support::blocked_atom) {
      self->state.pool.blocked();
      peer_shell(self).start_calls();
    },
    [=](support::resumed_atom) { self->state.pool.resumed(); },
    [=](contracts::peer_up& news) { self->state.here->directory().add(news.who, std::move(news.face)); },
    [=](contracts::peer_down& news) { peer_shell(self).went_down(news); },
  };
}

contracts::peer_actor spawn_peer(node_parts& parts) {
  auto& system = parts.services.system();
  if (parts.services.networked())
    return system.middleman().spawn_broker(make_peer<contracts::peer_actor::stateful_broker_pointer<peer_state>>, &parts);
  return system.spawn(make_peer<contracts::peer_actor::stateful_pointer<peer_state>>, &parts);
}

}  // namespace troupe::nodes
