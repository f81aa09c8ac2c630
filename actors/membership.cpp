// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership.hpp>

#include <algorithm>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/messages/registration.hpp>

namespace troupe {

namespace {

using std::chrono::nanoseconds;
using join_ptr = std::shared_ptr<join_task>;

constexpr nanoseconds retry_pause{100'000'000};
constexpr nanoseconds mesh_patience{300'000'000};  // of nodes that another one has just named as up

std::string milliseconds_text(std::int64_t ns) {
  return std::to_string(ns / 1'000'000) + " ms";
}

caf::error stopping_error(const membership_state& st) {
  return make_error(errc::stopping, "node '" + st.table.self().name + "' is stopping");
}

// What befell a connection, in words.
caf::error connect_error(const std::string& where, std::int64_t waited_ns, const caf::error& from) {
  if (from == caf::sec::request_timeout)
    return make_error(errc::deadline_passed, "no answer from " + where + " within " + milliseconds_text(waited_ns));
  return make_error(errc::unknown_peer, "no node listens at " + where + " (tried for " + milliseconds_text(waited_ns) +
                                          "); is it started, and are host and port right?");
}

// What befell a greeting: a node's own words pass unchanged.
caf::error greeting_error(const std::string& where, std::int64_t waited_ns, const caf::error& from) {
  if (from.category() == caf::error(errc::refused).category())
    return from;
  if (from == caf::sec::request_timeout)
    return make_error(errc::deadline_passed, "the node at " + where + " did not answer the greeting within " +
                                               milliseconds_text(waited_ns));
  if (from == caf::sec::unexpected_message)
    return make_error(errc::refused, "what listens at " + where + " is no troupe node");
  return make_error(errc::peer_down, "the node at " + where + " was lost while it was greeted");
}

template <class Self>
std::uint64_t after(Self self, nanoseconds delay, std::function<void()> run) {
  auto& st = self->state;
  const auto number = ++st.last_timer;
  st.timers.emplace(number, std::move(run));
  self->delayed_send(self, delay, tick_atom::value, number);
  return number;
}

template <class Self>
void take_down(Self self, node_id id, const std::string& reason) {
  auto& st = self->state;
  auto peer = st.table.remove(id, reason);
  if (!peer)
    return;
  self->demonitor(peer->face->address());
  for (const auto& subscriber : st.subscribers)
    caf::anon_send(subscriber, peer_down{peer->who, reason});
}

template <class Self>
void send_heartbeat(Self self, node_id to) {
  auto& st = self->state;
  const auto* peer = st.table.find(to);
  if (peer == nullptr)
    return;
  const auto face = caf::actor_cast<caf::actor>(peer->face);
  const auto patience = st.options.heartbeat * member_table::allowed_misses;
  self->request(face, patience, heartbeat{st.table.self().id, st.options.clock()})
    .then(
      [=](const heartbeat_seen& seen) {
        auto* known = self->state.table.find(to);
        if (known == nullptr || seen.from != to)
          return;
        known->answered = true;
        known->seen_ns = self->state.options.clock();
        known->clock.add(seen.sent_ns, seen.answered_ns, known->seen_ns);
      },
      [=](const caf::error& problem) {
        // Silence is counted by beat(); but who calls us gone will not talk to us again.
        if (problem == errc::refused)
          take_down(self, to, std::string("it no longer knows this node: ") + to_exception(problem).what());
      });
}

template <class Self>
void admit(Self self, const member& who, const caf::strong_actor_ptr& face) {
  auto& st = self->state;
  st.table.add(who, face, st.options.clock());
  self->monitor(face);
  for (const auto& subscriber : st.subscribers)
    caf::anon_send(subscriber, peer_up{who, face});
  for (auto i = st.searches.begin(); i != st.searches.end();) {
    if (i->name != who.name) {
      ++i;
      continue;
    }
    st.timers.erase(i->timer);
    i->promise.deliver(peer_up{who, face});
    i = st.searches.erase(i);
  }
  send_heartbeat(self, who.id);
}

// Makes room for `who` where the node that holds its name was plainly replaced: two can't listen at one address.
template <class Self>
const known_peer* living_rival(Self self, const member& who) {
  auto& st = self->state;
  const auto* rival = st.table.rival(who);
  if (rival == nullptr || who.port == 0 || rival->who.port != who.port || rival->who.host != who.host)
    return rival;
  take_down(self, rival->who.id, "replaced by a restarted node at the same address");
  return nullptr;
}

template <class Self>
welcome make_welcome(Self self) {
  auto& table = self->state.table;
  return {table.self(), table.members()};
}

template <class Self>
void greet(Self self, const hello& from, const caf::strong_actor_ptr& face, caf::typed_response_promise<welcome> promise) {
  auto& st = self->state;
  const auto& own = st.table.self();
  if (st.leaving) {
    promise.deliver(stopping_error(st));
    return;
  }
  if (st.table.find(from.id) != nullptr) {
    promise.deliver(make_welcome(self));
    return;
  }
  const member who{from.name, from.id, from.host, from.port};
  if (from.protocol != protocol_version) {
    promise.deliver(make_error(errc::refused, "node " + describe(who) + " speaks version " + std::to_string(from.protocol) +
                                                " of the protocol, node '" + own.name + "' version " +
                                                std::to_string(protocol_version) + "; run one release of troupe on both"));
    return;
  }
  auto objection = face == nullptr ? "the greeting of " + describe(who) + " came without a face" : st.table.objection(who);
  if (!objection.empty()) {
    promise.deliver(make_error(errc::refused, std::move(objection)));
    return;
  }
  const auto* rival = living_rival(self, who);
  if (rival == nullptr) {
    admit(self, who, face);
    promise.deliver(make_welcome(self));
    return;
  }
  // ME-4 protects living nodes: ask the one that holds the name.
  const auto held_by = rival->who;
  self->request(caf::actor_cast<caf::actor>(rival->face), 2 * st.options.heartbeat, heartbeat{own.id, st.options.clock()})
    .then(
      [=](const heartbeat_seen&) mutable {
        promise.deliver(make_error(errc::refused, "the name '" + who.name + "' is taken by node " + describe(held_by) +
                                                    "; choose another one"));
      },
      [=](const caf::error&) {
        take_down(self, held_by.id, "did not answer when another node claimed its name");
        greet(self, from, face, promise);
      });
}

template <class Self>
void finish(Self self, const join_ptr& task) {
  if (self->state.joins.erase(task) == 0)
    return;
  if (task->failure)
    task->promise.deliver(task->failure);
  else
    task->promise.deliver(task->first);
}

// One node of a join has answered or failed. Those a welcome named may fail (they may have just died), but no refusal passes.
template <class Self>
void settle(Self self, const join_ptr& task, bool first, caf::error problem) {
  if (problem && !task->failure && (first || problem == errc::refused))
    task->failure = std::move(problem);
  if (--task->open == 0)
    finish(self, task);
}

template <class Self>
void dial(Self self, join_ptr task, std::string host, std::uint16_t port, bool first);

template <class Self>
void welcomed(Self self, const join_ptr& task, const welcome& answer, const caf::strong_actor_ptr& face,
              const std::string& host, bool first) {
  auto& st = self->state;
  if (st.leaving) {
    settle(self, task, first, stopping_error(st));
    return;
  }
  auto who = answer.self;
  if (who.host.empty() || who.host == "0.0.0.0" || who.host == "::")
    who.host = host;  // it listens on every interface: this one reached it
  if (st.table.find(who.id) == nullptr) {
    auto objection = st.table.objection(who);
    if (objection.empty())
      if (const auto* rival = living_rival(self, who); rival != nullptr)
        objection = "the name of node " + describe(who) + " is taken by node " + describe(rival->who);
    if (!objection.empty()) {
      caf::anon_send(caf::actor_cast<caf::actor>(face), farewell{st.table.self().id, objection});
      settle(self, task, first, make_error(errc::refused, std::move(objection)));
      return;
    }
    admit(self, who, face);
  }
  if (first)
    task->first = who;
  task->met.insert(who.id);
  for (const auto& other : answer.members) {
    const bool needed = other.id != st.table.self().id && st.table.find(other.id) == nullptr && st.table.gone(other.id) == nullptr;
    if (needed && task->met.insert(other.id).second)
      dial(self, task, other.host, other.port, false);
  }
  settle(self, task, first, {});
}

template <class Self>
void say_hello(Self self, const join_ptr& task, const caf::strong_actor_ptr& face, const std::string& host,
               const std::string& where, std::int64_t until_ns, bool first) {
  auto& st = self->state;
  const auto begun = st.options.clock();
  const auto& own = st.table.self();
  self
    ->request(caf::actor_cast<caf::actor>(face), nanoseconds(std::max<std::int64_t>(until_ns - begun, 1)),
              hello{own.name, own.id, own.host, own.port, protocol_version}, st.options.face)
    .then([=](const welcome& answer) { welcomed(self, task, answer, face, host, first); },
          [=](const caf::error& problem) {
            settle(self, task, first, greeting_error(where, self->state.options.clock() - begun, problem));
          });
}

// Connects and greets; tries again for a while where nobody listens.
template <class Self>
void try_to_connect(Self self, const join_ptr& task, const std::string& host, std::uint16_t port, std::int64_t begun_ns,
                    std::int64_t until_ns, bool first) {
  auto& st = self->state;
  const auto where = host + ":" + std::to_string(port);
  const auto left = nanoseconds(std::max<std::int64_t>(until_ns - st.options.clock(), 1));
  self->request(st.options.connector, left, caf::connect_atom::value, host, port)
    .then(
      [=](const caf::node_id&, const caf::strong_actor_ptr& face, const std::set<std::string>&) {
        if (face != nullptr)
          say_hello(self, task, face, host, where, until_ns, first);
        else
          settle(self, task, first, make_error(errc::refused, "what listens at " + where + " is no troupe node"));
      },
      [=](const caf::error& problem) {
        const auto& options = self->state.options;
        const auto patience = first ? options.patience : std::min(options.patience, mesh_patience);
        const auto next = options.clock() + retry_pause.count();
        if (!self->state.leaving && next < std::min(until_ns, begun_ns + patience.count()))
          after(self, retry_pause, [=] { try_to_connect(self, task, host, port, begun_ns, until_ns, first); });
        else
          settle(self, task, first, connect_error(where, options.clock() - begun_ns, problem));
      });
}

template <class Self>
void dial(Self self, join_ptr task, std::string host, std::uint16_t port, bool first) {
  const auto now = self->state.options.clock();
  // The others get half of the time that is left, so that one which can't be reached does not fail the join (ME-3).
  const auto until = first ? task->deadline_ns : now + (task->deadline_ns - now) / 2;
  ++task->open;
  try_to_connect(self, task, host, port, now, until, first);
}

template <class Self>
caf::result<peer_up> find(Self self, const std::string& wanted, std::int64_t left_ns) {
  auto& st = self->state;
  if (st.leaving)
    return stopping_error(st);
  if (wanted == st.table.self().name)
    return peer_up{st.table.self(), st.options.face};
  if (const auto* peer = st.table.find_name(wanted))
    return peer_up{peer->who, peer->face};
  auto promise = self->template make_response_promise<peer_up>();
  const auto place = st.searches.insert(st.searches.end(), {wanted, 0, promise});
  // The timer goes when the search does: `place` is good whenever it fires.
  place->timer = after(self, nanoseconds(std::max<std::int64_t>(left_ns, 0)), [=] {
    auto& here = self->state;
    place->promise.deliver(make_error(errc::unknown_peer, "no peer '" + place->name + "' became known within " +
                                                            milliseconds_text(left_ns) + "; up are: " + here.table.names()));
    here.searches.erase(place);
  });
  return promise;
}

template <class Self>
caf::result<caf::unit_t> leave(Self self, const std::string& reason) {
  auto& st = self->state;
  if (std::exchange(st.leaving, true))
    return caf::unit;
  for (auto& search : std::exchange(st.searches, {})) {
    st.timers.erase(search.timer);
    search.promise.deliver(stopping_error(st));
  }
  for (const auto& task : std::exchange(st.joins, {}))
    task->promise.deliver(stopping_error(st));
  for (const auto& greeting : std::exchange(st.until_listening, {}))
    greeting();
  auto promise = self->template make_response_promise<caf::unit_t>();
  auto open = std::make_shared<std::size_t>(st.table.peers().size());
  if (*open == 0)
    promise.deliver(caf::unit);
  const std::function<void()> heard = [=]() mutable {
    if (--*open == 0)
      promise.deliver(caf::unit);
  };
  for (const auto& [id, peer] : st.table.peers()) {
    self->demonitor(peer.face->address());
    self->request(caf::actor_cast<caf::actor>(peer.face), st.options.heartbeat, farewell{st.table.self().id, reason})
      .then([=] { heard(); }, [=](const caf::error&) { heard(); });
  }
  return promise;
}

template <class Self>
void beat(Self self) {
  auto& st = self->state;
  if (st.leaving)
    return;
  for (const auto id : st.table.beat())
    take_down(self, id, "no sign of life for " + milliseconds_text(st.options.clock() - st.table.find(id)->seen_ns));
  for (const auto& [id, peer] : st.table.peers())
    send_heartbeat(self, id);
  after(self, st.options.heartbeat, [=] { beat(self); });
}

template <class Self>
void lost(Self self, const caf::down_msg& down) {
  auto& st = self->state;
  if (const auto* peer = st.table.find_face(down.source))
    take_down(self, peer->who.id, down.reason == caf::exit_reason::remote_link_unreachable ? "connection lost" : "its node stopped");
  std::erase_if(st.subscribers, [&](const caf::actor& subscriber) { return subscriber.address() == down.source; });
}

}  // namespace

template <class Self>
membership_host::behavior_type make_membership(Self self, membership_options options) {
  auto& st = self->state;
  st.table = member_table{options.self};
  st.options = std::move(options);
  if (!st.options.clock)
    st.options.clock = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  if (!st.options.connector)
    st.options.connector = caf::actor_cast<caf::actor>(self->system().middleman().actor_handle());
  self->set_down_handler([self](caf::down_msg& down) { lost(self, down); });
  after(self, st.options.heartbeat, [self] { beat(self); });
  const auto when_listening = [self](std::function<void()> run) {
    if (self->state.options.face == nullptr && !self->state.leaving)
      self->state.until_listening.push_back(std::move(run));
    else
      run();
  };
  return {
    [=](join_atom, const std::string& host, std::uint16_t port, std::int64_t left_ns) -> caf::result<member> {
      auto& here = self->state;
      if (here.leaving)
        return stopping_error(here);
      const auto now = here.options.clock();
      auto task = std::make_shared<join_task>();
      task->promise = self->template make_response_promise<member>();
      task->deadline_ns = now + std::max<std::int64_t>(left_ns, 1);
      here.joins.insert(task);
      when_listening([=] { dial(self, task, host, port, true); });
      return task->promise;
    },
    [=](find_atom, const std::string& wanted, std::int64_t left_ns) { return find(self, wanted, left_ns); },
    [=](list_atom) { return self->state.table.members(); },
    [=](const hello& from, const caf::strong_actor_ptr& face) -> caf::result<welcome> {
      auto promise = self->template make_response_promise<welcome>();
      when_listening([=] { greet(self, from, face, promise); });
      return promise;
    },
    [=](const heartbeat& from) -> caf::result<heartbeat_seen> {
      auto& here = self->state;
      if (here.leaving)
        return stopping_error(here);
      if (here.table.find(from.from) != nullptr)
        return heartbeat_seen{here.table.self().id, from.sent_ns, here.options.clock()};
      if (const auto* reason = here.table.gone(from.from))
        return make_error(errc::refused, "node '" + here.table.self().name + "' holds node " + to_string(from.from) +
                                           " for gone: " + *reason);
      return make_error(errc::unknown_peer, "node '" + here.table.self().name + "' was not greeted by node " + to_string(from.from));
    },
    [=](const farewell& from) { take_down(self, from.from, "left: " + from.reason); },
    [=](subscribe_atom, const caf::actor& subscriber) {
      auto& here = self->state;
      self->monitor(subscriber);
      here.subscribers.push_back(subscriber);
      for (const auto& [id, peer] : here.table.peers())
        caf::anon_send(subscriber, peer_up{peer.who, peer.face});
    },
    [=](leave_atom, const std::string& reason) { return leave(self, reason); },
    [=](clock_atom, node_id of) -> caf::result<std::int64_t> {
      auto& here = self->state;
      if (of == here.table.self().id)
        return std::int64_t{0};
      if (const auto* peer = here.table.find(of))
        return peer->clock.offset_ns();
      return make_error(errc::unknown_peer, "no peer has the id " + to_string(of) + "; up are: " + here.table.names());
    },
    [=](listen_atom, const caf::strong_actor_ptr& face, std::uint16_t port) {
      auto& here = self->state;
      here.options.face = face;
      here.table.set_port(port);
      for (const auto& run : std::exchange(here.until_listening, {}))
        run();
    },
    [=](tick_atom, std::uint64_t number) {
      if (auto due = self->state.timers.extract(number))
        due.mapped()();
    },
  };
}

template membership_host::behavior_type make_membership(membership_host::stateful_pointer<membership_state>, membership_options);
template membership_host::behavior_type make_membership(membership_host::stateful_broker_pointer<membership_state>,
                                                        membership_options);

membership_host spawn_membership(caf::actor_system& system, membership_options options) {
  if (system.has_middleman())
    return system.middleman().spawn_broker(make_membership<membership_host::stateful_broker_pointer<membership_state>>,
                                           std::move(options));
  return system.spawn(make_membership<membership_host::stateful_pointer<membership_state>>, std::move(options));
}

}  // namespace troupe
