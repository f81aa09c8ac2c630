// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/admission.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <caf/io/system_messages.hpp>

#include <troupe/actors/membership/membership_core.hpp>
#include <troupe/actors/membership/route.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/messages/registration.hpp>

namespace troupe::membership {

namespace {

using std::chrono::nanoseconds;
using join_ptr = std::shared_ptr<join_task>;

constexpr nanoseconds retry_pause{100'000'000};
// A connection whose packets were lost for a while waits for ever longer until it sends them again. A new one is sooner there.
constexpr nanoseconds longest_try{15'000'000'000};
constexpr int parts_to_pause = 8;  // a pause between two tries is this part of the time since the first one
constexpr nanoseconds shortest_greeting{1'000'000'000};
constexpr nanoseconds longest_look_up{5'000'000'000};
// How long a greeting waits for an unreachable node of the same name, which may have ended: at least `name_patience`, and until
// the node was unreachable for `news_patience`.
constexpr nanoseconds name_patience{800'000'000};
constexpr nanoseconds news_patience{2'000'000'000};
constexpr nanoseconds longest_meeting{10'000'000'000};
constexpr nanoseconds mesh_patience{300'000'000};  // for nodes that another node has just named as up

// One node that this node has to reach: for a join, or because the table asked for it.
struct target {
  join_ptr task;
  std::string host;
  std::uint16_t port;
  bool first;  // whether it is the node that the user named; the others are nodes that this one knows
  std::int64_t begun_ns;
  std::int64_t until_ns;
  node_id whom = {};  // the node that should listen there, of which the table wants to hear; empty if the user named an address
  std::string name = {};  // of that node
  bool is_again = false;  // whether the table dials the node anew if it is not reached
  node_id greeted = {};   // the node that listens there, as far as this node knows

  std::string where() const { return address_text(host, port); }
};
using target_ptr = std::shared_ptr<target>;

std::string text_in_brackets(const caf::error& of) {
  const auto text = of.context().empty() ? std::string() : of.context().get_as<std::string>(0);
  return text.empty() ? "" : ": " + text;
}

/// Whether nothing says that the node will come: no program listens there, or the name has no address.
bool is_nobody(const caf::error& problem) {
  return problem == caf::sec::cannot_connect_to_node || problem == errc::unknown_peer || problem == errc::misuse;
}

// The error text for a connection or greeting that failed. An error that the other node sent is returned unchanged.
caf::error explain(const target& to, const char* missing, std::int64_t now_ns, const caf::error& from) {
  const auto waited = milliseconds_text(now_ns - to.begun_ns);
  if (from.category() == caf::error(errc::refused).category()) return from;
  if (from == caf::sec::disconnect_during_handshake)
    return make_error(errc::unknown_peer, "the program at " + to.where() + " has ended the connection before a node answered" +
                                            text_in_brackets(from) + " (tried for " + waited +
                                            "); is it a node, and does it start or stop?");
  if (from == caf::sec::request_timeout)
    return make_error(errc::deadline_passed, std::string("no ") + missing + " from " + to.where() + " within " + waited);
  if (from == caf::sec::unexpected_message)
    return make_error(errc::refused, "what listens at " + to.where() + " is no troupe node");
  const auto* beyond = is_loopback(to.host) ? "" : ", does it listen beyond loopback (--host)";
  return make_error(errc::unknown_peer, "no node listens at " + to.where() + " (tried for " + waited + "); is it started" +
                                          beyond + ", and are host and port right?");
}

/// This node, as the node at the other end of the route reaches it.
template <class Self>
member self_for(Self self, const std::optional<route>& to) {
  auto who = self->state.table.self();
  who.host = host_to_tell(who.host, to);
  return who;
}

template <class Self>
welcome make_welcome(Self self, const hello& from, const std::optional<route>& by) {
  const auto& table = self->state.table;
  return {self_for(self, by), news_for(self, table.news_for(from.id, from.digest), by), table.between(from.id),
          table.incarnation()};
}

template <class Self>
void finish(Self self, const join_ptr& task) {
  if (self->state.joins.erase(task) == 0) return;
  if (task->ends) return task->ends();
  if (!task->promise.pending()) return;
  if (task->failure)
    task->promise.deliver(task->failure);
  else
    task->promise.deliver(task->first);
}

// One node of a join has answered or failed. A node that a welcome named may fail, as it may have just died, but if it refuses
// this node the join fails.
template <class Self>
void settle(Self self, const join_ptr& task, bool first, caf::error problem) {
  const bool is_refusal = problem == errc::refused || problem == errc::peer_down;
  if (problem && !task->failure && (first || is_refusal)) task->failure = std::move(problem);
  if (--task->open == 0) finish(self, task);
}

template <class Self>
void dial(Self self, const join_ptr& task, const member& whom);

/// Leaves only the news that count: of a peer that is not believed, those about itself.
template <class Self>
void take_unbelieved(Self self, std::vector<member_news>& news, node_id from) {
  const auto& believes = self->state.options.believes;
  if (believes && !believes(from)) std::erase_if(news, [&](const member_news& each) { return each.who.id != from; });
}

// Takes in what another node has heard, and greets the new neighbours.
template <class Self>
void meet(Self self, const join_ptr& task, node_id from, std::vector<member_news> news, const std::optional<route>& to_teller) {
  auto& st = self->state;
  take_unbelieved(self, news, from);
  take_unreachable(news, to_teller);
  const auto now = st.options.clock();
  act(self, st.table.hear_all(from, news, now));
  for (const auto& other : st.table.take_strangers(now)) dial(self, task, other);
  std::erase_if(news, [&](const member_news& each) { return !st.table.heard_of().is_left_out(each.who.id); });
  if (news.empty()) return;
  // A node that was restarted may be heard of before the end of its predecessor is: the join waits for that.
  ++task->open;
  const nanoseconds patience = (member_table::intervals_of_patience + 1) * st.options.heartbeat;
  after(self, std::min(patience, nanoseconds(std::max<std::int64_t>(task->deadline_ns - now, 1))), [=] {
    caf::error problem;
    for (const auto& each : news)
      if (!problem && self->state.table.heard_of().is_left_out(each.who.id))
        problem = make_error(errc::refused, "the name '" + each.who.name + "' of node " + describe(each.who) +
                                              " is taken by another node; give one of them another name");
    settle(self, task, false, std::move(problem));
  });
}

// Tells the table how a dial ended that the table had asked for.
template <class Self>
void end_dial(Self self, const target& to, member_table::dial_end how, const std::string& why = {}) {
  auto& st = self->state;
  if (to.whom.value != 0) act(self, st.table.dialled(to.whom, how, st.options.clock(), why));
}

member_table::dial_end end_by(const caf::error& problem) {
  using dial_end = member_table::dial_end;
  return problem == caf::sec::cannot_connect_to_node ? dial_end::nobody_listens
         : problem == caf::sec::unexpected_message   ? dial_end::another_listens
                                                     : dial_end::not_reached;
}

template <class Self>
void say_hello(Self self, const target_ptr& to, const caf::strong_actor_ptr& gateway, nanoseconds left);

template <class Self>
nanoseconds time_left(Self self, const target& to) {
  return nanoseconds(std::max<std::int64_t>(to.until_ns - self->state.options.clock(), 1));
}

/// Whether the node may become a member. With certificates a second process of its name may have greeted since.
template <class Self>
bool is_accepted(Self self, node_id who) {
  const auto& accept = self->state.options.accept;
  return !accept || accept(who);
}

/// The node that is told greets again.
caf::error overtaken(const member& who) {
  return make_error(errc::unknown_peer, "another process has greeted as node '" + who.name + "' meanwhile");
}

template <class Self>
void try_to_reach(Self self, const target_ptr& to);

template <class Self>
void welcomed(Self self, const target_ptr& target, const welcome& answer, const caf::strong_actor_ptr& gateway) {
  auto& to = *target;
  auto& st = self->state;
  if (st.leaving) {
    settle(self, to.task, to.first, stopping_error(st));
    return;
  }
  const auto by = st.options.route_to(gateway->node());
  auto who = answer.self;
  using dial_end = member_table::dial_end;
  if (!to.name.empty() && who.name != to.name) {
    end_dial(self, to, dial_end::another_listens, "node '" + who.name + "' listens there");
    return settle(self, to.task, false, {});
  }
  who.host = host_to_reach(who.host, by);
  end_dial(self, to, who.id == to.whom ? dial_end::reached : dial_end::another_listens,
           "another process listens there as node '" + who.name + "'");
  if (st.table.find(who.id) == nullptr) {
    auto objection = st.table.objection(who, self_for(self, by));
    const auto* rival = objection.empty() ? living_rival(self, who) : nullptr;
    const auto* holder = rival != nullptr ? &rival->who : other_holder(self, who);
    if (objection.empty() && holder != nullptr)
      objection = "the name of node " + describe(who) + " is taken by node " + describe(*holder);
    // The member of that name may have ended, and this node may not know it yet: the table dials again.
    if (!objection.empty() && !to.first && holder != nullptr) return settle(self, to.task, false, {});
    if (!objection.empty()) {
      caf::anon_send(caf::actor_cast<caf::actor>(gateway), farewell{st.table.self().id, objection});
      settle(self, to.task, to.first, make_error(errc::refused, std::move(objection)));
      return;
    }
  }
  const auto now = st.options.clock();
  if (!is_accepted(self, who.id)) {
    if (to.is_again) return settle(self, to.task, false, {});  // the table dials again
    if (now + retry_pause.count() >= to.until_ns) return settle(self, to.task, to.first, overtaken(who));
    after(self, retry_pause, [=] { try_to_reach(self, target); });
    return;
  }
  act(self, st.table.met(who, gateway, answer.between, member_table::way::answers, now, answer.incarnation));
  if (st.table.between(who.id) != answer.between && now < to.until_ns) {
    to.greeted = who.id;  // the other node now gets to know this node's bond, and takes it over
    return say_hello(self, target, gateway, time_left(self, to));
  }
  if (to.first) {
    to.task->first = who;
    to.task->met_ns = now;
    to.task->seen = {};
    to.task->deadline_ns = std::min(to.task->deadline_ns, now + longest_meeting.count());
  }
  if (!answer.news.empty()) {  // otherwise the two nodes have heard the same
    meet(self, to.task, who.id, answer.news, by);
    pass_on(self, who.id, st.table.beyond(answer.news), true);
  }
  const auto task = to.task;
  settle(self, task, to.first, {});
  if (to.first && task->open > 0 && task->tells) task->tells();
}

// Tries again unless the other end says why it does not take this node in: a handshake was cut, packets were lost, or the gateway does not
// know its node yet. If two nodes dial each other at the same moment CAF drops one of the connections, and messages on it may be lost.
// Where no program listens, only for a while.
template <class Self>
void unreached(Self self, const target_ptr& to, const char* missing, const caf::error& problem) {
  const auto& options = self->state.options;
  const auto now = options.clock();
  auto reason = explain(*to, missing, now, problem);
  if (to->is_again) {
    end_dial(self, *to, end_by(problem), to_exception(reason).what());
    return settle(self, to->task, false, {});
  }
  auto& task = *to->task;
  const auto patience = to->first ? options.patience : std::min(options.patience, mesh_patience);
  const auto pause =
    std::clamp(nanoseconds((now - to->begun_ns) / parts_to_pause), retry_pause, std::max(retry_pause, task.longest_pause));
  const auto next = now + pause.count();
  const bool says_why = problem.category() == caf::error(errc::refused).category() && !is_nobody(problem);
  const bool is_patient =
    (to->first && task.is_patient) || (is_nobody(problem) ? next < to->begun_ns + patience.count() : !says_why);
  if (reason != errc::refused && is_patient && next < to->until_ns && !self->state.leaving) {
    if (to->first) task.seen = std::move(reason);
    after(self, pause, [=] { try_to_reach(self, to); });
    if (to->first && task.tells) task.tells();
    return;
  }
  end_dial(self, *to, end_by(problem), to_exception(reason).what());
  settle(self, to->task, to->first, std::move(reason));
}

template <class Self>
void say_hello(Self self, const target_ptr& to, const caf::strong_actor_ptr& gateway, nanoseconds left) {
  const auto& table = self->state.table;
  const auto by = self->state.options.route_to(gateway->node());
  const auto own = self_for(self, by);
  const auto patience = std::min(left, std::max(shortest_greeting, 4 * self->state.options.heartbeat));
  const auto failed = [=](const caf::error& problem) { unreached(self, to, "answer to the greeting", problem); };
  // CAF leaves a request unanswered when its connection is lost: the down message of the gateway ends the greeting instead.
  auto& st = self->state;
  const auto number = ++st.last_greeting;
  watch(self, gateway);
  st.greetings[number] = {gateway->address(), [=] { failed(caf::sec::request_timeout); }};
  self
    ->request(caf::actor_cast<caf::actor>(gateway), patience,
              hello{own.name, own.id, own.host, own.port, protocol_version, table.digest(to->greeted), to->greeted,
                    table.between(to->greeted), to->name, table.incarnation(), own.formats, own.devices},
              self->state.options.gateway)
    .then(
      [=](const welcome& answer) {
        if (self->state.greetings.erase(number) > 0) welcomed(self, to, answer, gateway);
      },
      [=](const caf::error& problem) {
        if (self->state.greetings.erase(number) > 0) failed(problem);
      });
}

template <class Self>
void try_to_reach(Self self, const target_ptr& to) {
  auto& st = self->state;
  const auto left = std::min(time_left(self, *to), longest_try);
  self->request(st.options.connector, left, caf::connect_atom::value, to->host, to->port, std::int64_t{left.count()})
    .then(
      [=](const caf::node_id&, const caf::strong_actor_ptr& gateway, const std::set<std::string>&) {
        const auto& here = self->state;
        if (to->first && gateway != nullptr && gateway == here.options.gateway) {
          to->task->is_itself = true;
          return settle(self, to->task, true,
                        make_error(errc::refused, here.table.objection(here.table.self(), here.table.self())));
        }
        if (gateway != nullptr)
          say_hello(self, to, gateway, time_left(self, *to));
        else
          unreached(self, to, "answer", caf::sec::unexpected_message);
      },
      [=](const caf::error& problem) { unreached(self, to, "answer", problem); });
}

/// `whom`: the new neighbour; without id and name: the node that the user named.
template <class Self>
void dial(Self self, const join_ptr& task, const member& whom) {
  const auto now = self->state.options.clock();
  const bool first = whom.id == node_id{};
  // Other nodes get half of the time that is left. So a node that can't be reached does not make the join miss its deadline
  // (ME-3).
  const auto until = first ? task->deadline_ns : now + (task->deadline_ns - now) / 2;
  ++task->open;
  try_to_reach(
    self, std::make_shared<target>(target{task, whom.host, whom.port, first, now, until, whom.id, whom.name, false, whom.id}));
}

/// Refuses a node that greets. `code`: refused if the node is wrong, peer_down if the same greeting may be accepted later.
template <class Self>
void refuse(Self self, caf::typed_response_promise<welcome>& promise, const member& who, const std::string& reason,
            errc code = errc::refused) {
  self->state.options.log.warn("membership", [&] { return "refused node " + describe(who) + ": " + reason; });
  promise.deliver(make_error(code, reason));
}

}  // namespace

template <class Self>
void refuse_name(Self self, caf::typed_response_promise<welcome>& promise, const member& who, const member& held_by,
                 const std::string& advice, errc code = errc::refused) {
  refuse(self, promise, who, "the name '" + who.name + "' is taken by node " + describe(held_by) + advice, code);
}

template <class Self>
void greet_within(Self self, const hello& from, const caf::strong_actor_ptr& gateway,
                  caf::typed_response_promise<welcome> promise, nanoseconds left);

/// A member that is no peer has the name of the node that greets. This node connects to that member, which may have ended, and
/// then goes on with the greeting.
template <class Self>
void ask_holder(Self self, const member& holder, const hello& from, const caf::strong_actor_ptr& gateway,
                const caf::typed_response_promise<welcome>& promise, nanoseconds left) {
  const auto patience = 2 * self->state.options.heartbeat;
  self->state.table.contest(holder.id, self->state.options.clock());
  const auto go_on = [=] { greet_within(self, from, gateway, promise, left - patience - retry_pause); };
  const auto held = [=, held_by = holder, answer = promise](const caf::error&) mutable {
    const member who{from.name, from.id, from.host, from.port};
    if (other_holder(self, who) != nullptr && left <= patience + retry_pause)
      return refuse_name(self, answer, who, held_by, ", which does not answer; choose another one, or try again later",
                         errc::peer_down);
    after(self, retry_pause, go_on);
  };
  self
    ->request(caf::actor_cast<caf::actor>(self->ctrl()), patience + patience, support::find_atom::value, holder.id,
              std::int64_t{patience.count()})
    .then([=](const contracts::peer_up&) { go_on(); }, held);
}

/// `left`: how long the greeting may wait for a node of the same name that is unreachable. That node may have ended, and this
/// node may not know it yet.
template <class Self>
void greet_within(Self self, const hello& from, const caf::strong_actor_ptr& gateway,
                  caf::typed_response_promise<welcome> promise, nanoseconds left) {
  auto& st = self->state;
  const auto& own = st.table.self();
  if (st.leaving) {
    promise.deliver(stopping_error(st));
    return;
  }
  const auto by = gateway == nullptr ? std::nullopt : st.options.route_to(gateway->node());
  member who{from.name, from.id, from.host, from.port, from.formats, from.devices};
  if (from.protocol != protocol_version)
    return refuse(self, promise, who,
                  "node " + describe(who) + " speaks version " + std::to_string(from.protocol) + " of the protocol, node '" +
                    own.name + "' version " + std::to_string(protocol_version) + "; run one release of troupe on both");
  const auto objection = gateway == nullptr ? "the greeting of " + describe(who) + " came without a gateway"
                                            : st.table.objection(who, self_for(self, by));
  if (!objection.empty()) return refuse(self, promise, who, objection);
  if (!from.to_name.empty() && from.to_name != own.name)  // nothing is wrong with the node that greets
    return refuse(self, promise, who,
                  "node " + describe(who) + " looks for node '" + from.to_name + "' at the address of node '" + own.name + "'",
                  errc::unknown_peer);
  if (const auto why = unreachable(who, by); !why.empty()) return refuse(self, promise, who, why);
  who.host = host_to_reach(who.host, by);
  if (const auto* rival = living_rival(self, who); rival == nullptr) {
    if (const auto* holder = other_holder(self, who)) return ask_holder(self, *holder, from, gateway, promise, left);
    if (!is_accepted(self, who.id)) {
      promise.deliver(overtaken(who));
      return;
    }
    const auto theirs = from.to == own.id ? from.between : bond{};
    act(self, st.table.met(who, gateway, theirs, member_table::way::hears, st.options.clock(), from.incarnation));
    watch(self, gateway);  // the peer may end before it is up again
    promise.deliver(make_welcome(self, from, by));
  } else if (rival->is_up) {
    // The holder of the name may have ended just now: a sign of life decides.
    const auto held_by = rival->who;
    self
      ->request(caf::actor_cast<caf::actor>(rival->gateway), 2 * st.options.heartbeat,
                heartbeat{own.id, st.options.clock(), rival->between})
      .then([=](const heartbeat_seen&) mutable { refuse_name(self, promise, who, held_by, other_name); },
            [=](const caf::error&) {
              if (const auto* holder = self->state.table.find_up(held_by.id))
                act(self, self->state.table.suspect(holder->who.id, self->state.options.clock()));
              greet_within(self, from, gateway, promise, left);
            });
  } else if (left > retry_pause || st.options.clock() - rival->lost_ns < news_patience.count()) {
    after(self, retry_pause, [=] { greet_within(self, from, gateway, promise, left - retry_pause); });
  } else {
    refuse_name(self, promise, who, rival->who,
                ", which is unreachable; choose another one, or try again once that node is gone (after " +
                  milliseconds_text(st.options.forget_after.count()) + ")",
                errc::peer_down);
  }
}

template <class Self>
void greet(Self self, const hello& from, const caf::strong_actor_ptr& gateway, caf::typed_response_promise<welcome> promise) {
  greet_within(self, from, gateway, promise, name_patience);
}

/// Begins to reach a peer, or a member that is to become one. The first step is `start`.
template <class Self>
void reach_again(Self self, const member& who, const std::function<void(const target_ptr&)>& start) {
  auto& st = self->state;
  const auto now = st.options.clock();
  // A lost packet of a dial costs a second: a peer that is back is reached sooner by the next dial. A look-up of a name may take longer.
  const auto least = st.table.find(who.id) != nullptr ? shortest_greeting : longest_look_up;
  const auto patience = std::max(least, 4 * st.options.heartbeat);
  auto task = std::make_shared<join_task>();
  task->deadline_ns = now + patience.count();
  ++task->open;
  st.joins.insert(task);
  start(
    std::make_shared<target>(target{task, who.host, who.port, false, now, task->deadline_ns, who.id, who.name, true, who.id}));
}

template <class Self>
void dial_again(Self self, const member& who) {
  reach_again(self, who, [=](const target_ptr& to) { try_to_reach(self, to); });
}

template <class Self>
void greet_again(Self self, node_id who) {
  auto& st = self->state;
  const auto* peer = st.table.find(who);
  if (peer == nullptr || !peer->is_connected || st.leaving) return;
  const auto gateway = peer->gateway;
  reach_again(self, peer->who, [=](const target_ptr& to) { say_hello(self, to, gateway, time_left(self, *to)); });
}

template <class Self>
void join(Self self, const std::shared_ptr<join_task>& task, const std::string& host, std::uint16_t port) {
  dial(self, task, member{{}, {}, host, port});
}

template <class Self>
void hear(Self self, const gossip& from) {
  auto& st = self->state;
  const auto* peer = st.table.find(from.from);
  if (peer == nullptr || st.leaving) return;
  const auto by = st.options.route_to(peer->gateway->node());
  if (!from.introduces) {
    auto news = from.news;
    take_unbelieved(self, news, from.from);
    take_unreachable(news, by);
    return act(self, st.table.hear(from.from, news, st.options.clock()));
  }
  auto task = std::make_shared<join_task>();
  task->deadline_ns = st.options.clock() + longest_meeting.count();
  st.joins.insert(task);
  ++task->open;  // keeps the task open until all nodes are dialled
  meet(self, task, from.from, from.news, by);
  settle(self, task, false, {});
}

using on_scheduler = contracts::membership_host::stateful_pointer<membership_state>;
using in_network_thread = contracts::membership_host::stateful_broker_pointer<membership_state>;
template void greet(on_scheduler, const hello&, const caf::strong_actor_ptr&, caf::typed_response_promise<welcome>);
template void greet(in_network_thread, const hello&, const caf::strong_actor_ptr&, caf::typed_response_promise<welcome>);
template void dial_again(on_scheduler, const member&);
template void dial_again(in_network_thread, const member&);
template void greet_again(on_scheduler, node_id);
template void greet_again(in_network_thread, node_id);
template void hear(on_scheduler, const gossip&);
template void hear(in_network_thread, const gossip&);
template void join(on_scheduler, const std::shared_ptr<join_task>&, const std::string&, std::uint16_t);
template void join(in_network_thread, const std::shared_ptr<join_task>&, const std::string&, std::uint16_t);

}  // namespace troupe::membership
