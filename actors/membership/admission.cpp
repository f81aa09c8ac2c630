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
constexpr nanoseconds shortest_greeting{1'000'000'000};
constexpr nanoseconds longest_meeting{10'000'000'000};
constexpr nanoseconds mesh_patience{300'000'000};  // for nodes that another node has just named as up

// One node that a join has to reach.
struct target {
  join_ptr task;
  std::string host;
  std::uint16_t port;
  bool first;  // whether it is the node that the user named; the others are nodes that this one knows
  std::int64_t begun_ns;
  std::int64_t until_ns;

  std::string where() const { return address_text(host, port); }
};
using target_ptr = std::shared_ptr<target>;

// The error text for a connection or greeting that failed. An error that the other node sent is returned unchanged.
caf::error explain(const target& to, const char* missing, std::int64_t now_ns, const caf::error& from) {
  const auto waited = milliseconds_text(now_ns - to.begun_ns);
  if (from.category() == caf::error(errc::refused).category()) return from;
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

/// The peers that the node at the other end of the route can reach. The log names the others.
template <class Self>
std::vector<member> peers_for(Self self, const std::optional<route>& to) {
  auto known = self->state.table.members();
  const auto left_out = take_unreachable(known, to);
  if (!to) return known;
  for (const auto& who : left_out)
    self->state.options.log.warn("membership", [&] {
      return "the node at " + to->other + " is not told of node " + describe(who) +
             ": they can't meet, because that address is loopback; start node '" + who.name + "' with --host or --advertise";
    });
  return known;
}

template <class Self>
welcome make_welcome(Self self, const std::optional<route>& to) {
  return {self_for(self, to), peers_for(self, to)};
}

template <class Self>
void finish(Self self, const join_ptr& task) {
  if (self->state.joins.erase(task) == 0 || !task->promise.pending()) return;
  if (task->failure)
    task->promise.deliver(task->failure);
  else
    task->promise.deliver(task->first);
}

// One node of a join has answered or failed. A node that a welcome named may fail, as it may have just died, but if it refuses
// this node the join fails.
template <class Self>
void settle(Self self, const join_ptr& task, bool first, caf::error problem) {
  if (problem && !task->failure && (first || problem == errc::refused)) task->failure = std::move(problem);
  if (--task->open == 0) finish(self, task);
}

template <class Self>
void dial(Self self, const join_ptr& task, const std::string& host, std::uint16_t port, bool first);

// Greets the nodes that another node knows and this node does not know.
template <class Self>
void meet(Self self, const join_ptr& task, std::vector<member> others, const std::optional<route>& to_teller) {
  auto& table = self->state.table;
  take_unreachable(others, to_teller);
  for (const auto& other : others) {
    const bool needed = other.id != table.self().id && table.find(other.id) == nullptr && table.gone(other.id) == nullptr;
    if (needed && task->met.insert(other.id).second) dial(self, task, other.host, other.port, false);
  }
}

template <class Self>
void welcomed(Self self, const target& to, const welcome& answer, const caf::strong_actor_ptr& gateway) {
  auto& st = self->state;
  if (st.leaving) {
    settle(self, to.task, to.first, stopping_error(st));
    return;
  }
  const auto by = st.options.route_to(gateway->node());
  auto who = answer.self;
  who.host = host_to_reach(who.host, by);
  if (st.table.find(who.id) == nullptr) {
    auto objection = st.table.objection(who);
    if (objection.empty())
      if (const auto* rival = living_rival(self, who); rival != nullptr)
        objection = "the name of node " + describe(who) + " is taken by node " + describe(rival->who);
    if (!objection.empty()) {
      caf::anon_send(caf::actor_cast<caf::actor>(gateway), farewell{st.table.self().id, objection});
      settle(self, to.task, to.first, make_error(errc::refused, std::move(objection)));
      return;
    }
    admit(self, who, gateway);
  }
  if (to.first) to.task->first = who;
  to.task->met.insert(who.id);
  meet(self, to.task, answer.members, by);
  settle(self, to.task, to.first, {});
}

template <class Self>
void try_to_reach(Self self, const target_ptr& to);

// Tries again for a while if the problem may pass: no program listens, a handshake was cut, or the gateway does not know its
// node yet. An unanswered greeting is repeated until the deadline: if two nodes dial each other at the same moment CAF drops
// one of the connections, and messages on it may be lost.
template <class Self>
void unreached(Self self, const target_ptr& to, const char* missing, const caf::error& problem) {
  const auto& options = self->state.options;
  const auto now = options.clock();
  auto reason = explain(*to, missing, now, problem);
  const auto patience = to->first ? options.patience : std::min(options.patience, mesh_patience);
  const bool patient = reason == errc::unknown_peer && now + retry_pause.count() < to->begun_ns + patience.count();
  const bool again = (patient || reason == errc::deadline_passed) && now + retry_pause.count() < to->until_ns;
  if (again && !self->state.leaving)
    after(self, retry_pause, [=] { try_to_reach(self, to); });
  else
    settle(self, to->task, to->first, std::move(reason));
}

template <class Self>
void say_hello(Self self, const target_ptr& to, const caf::strong_actor_ptr& gateway, nanoseconds left) {
  const auto by = self->state.options.route_to(gateway->node());
  const auto own = self_for(self, by);
  const auto patience = std::min(left, std::max(shortest_greeting, 4 * self->state.options.heartbeat));
  self
    ->request(caf::actor_cast<caf::actor>(gateway), patience,
              hello{own.name, own.id, own.host, own.port, protocol_version, peers_for(self, by)}, self->state.options.gateway)
    .then([=](const welcome& answer) { welcomed(self, *to, answer, gateway); },
          [=](const caf::error& problem) { unreached(self, to, "answer to the greeting", problem); });
}

template <class Self>
void try_to_reach(Self self, const target_ptr& to) {
  auto& st = self->state;
  const auto left = [=] { return nanoseconds(std::max<std::int64_t>(to->until_ns - self->state.options.clock(), 1)); };
  self->request(st.options.connector, left(), caf::connect_atom::value, to->host, to->port, std::int64_t{left().count()})
    .then(
      [=](const caf::node_id&, const caf::strong_actor_ptr& gateway, const std::set<std::string>&) {
        if (gateway != nullptr)
          say_hello(self, to, gateway, left());
        else
          unreached(self, to, "answer", caf::sec::unexpected_message);
      },
      [=](const caf::error& problem) { unreached(self, to, "answer", problem); });
}

template <class Self>
void dial(Self self, const join_ptr& task, const std::string& host, std::uint16_t port, bool first) {
  const auto now = self->state.options.clock();
  // Other nodes get half of the time that is left. So a node that can't be reached does not make the join miss its deadline
  // (ME-3).
  const auto until = first ? task->deadline_ns : now + (task->deadline_ns - now) / 2;
  ++task->open;
  try_to_reach(self, std::make_shared<target>(target{task, host, port, first, now, until}));
}

// The node that greets may belong to another cluster. Then this node greets the other nodes of that cluster.
template <class Self>
void meet_friends(Self self, const hello& from, const std::optional<route>& by) {
  if (from.members.empty()) return;
  auto task = std::make_shared<join_task>();
  task->deadline_ns = self->state.options.clock() + longest_meeting.count();
  task->met.insert(from.id);
  self->state.joins.insert(task);
  ++task->open;  // keeps the task open until all nodes are dialled
  meet(self, task, from.members, by);
  settle(self, task, false, {});
}

/// Refuses a node that greets.
template <class Self>
void refuse(Self self, caf::typed_response_promise<welcome>& promise, const member& who, const std::string& reason) {
  self->state.options.log.warn("membership", [&] { return "refused node " + describe(who) + ": " + reason; });
  promise.deliver(make_error(errc::refused, reason));
}

}  // namespace

template <class Self>
void greet(Self self, const hello& from, const caf::strong_actor_ptr& gateway, caf::typed_response_promise<welcome> promise) {
  auto& st = self->state;
  const auto& own = st.table.self();
  if (st.leaving) {
    promise.deliver(stopping_error(st));
    return;
  }
  const auto by = gateway == nullptr ? std::nullopt : st.options.route_to(gateway->node());
  if (st.table.find(from.id) != nullptr) {
    promise.deliver(make_welcome(self, by));
    return;
  }
  member who{from.name, from.id, from.host, from.port};
  if (from.protocol != protocol_version)
    return refuse(self, promise, who,
                  "node " + describe(who) + " speaks version " + std::to_string(from.protocol) + " of the protocol, node '" +
                    own.name + "' version " + std::to_string(protocol_version) + "; run one release of troupe on both");
  const auto objection =
    gateway == nullptr ? "the greeting of " + describe(who) + " came without a gateway" : st.table.objection(who);
  if (!objection.empty()) return refuse(self, promise, who, objection);
  if (const auto why = unreachable(who, by); !why.empty()) return refuse(self, promise, who, why);
  who.host = host_to_reach(who.host, by);
  const auto* rival = living_rival(self, who);
  if (rival == nullptr) {
    admit(self, who, gateway);
    promise.deliver(make_welcome(self, by));
    meet_friends(self, from, by);
    return;
  }
  // Only a living node keeps its name (ME-4): asks the holder of the name for a sign of life.
  const auto held_by = rival->who;
  self->request(caf::actor_cast<caf::actor>(rival->gateway), 2 * st.options.heartbeat, heartbeat{own.id, st.options.clock()})
    .then(
      [=](const heartbeat_seen&) mutable {
        refuse(self, promise, who,
               "the name '" + who.name + "' is taken by node " + describe(held_by) + "; choose another one");
      },
      [=](const caf::error&) {
        give_up(self, held_by.id, "did not answer when another node claimed its name");
        greet(self, from, gateway, promise);
      });
}

template <class Self>
void join(Self self, const std::shared_ptr<join_task>& task, const std::string& host, std::uint16_t port) {
  dial(self, task, host, port, true);
}

using on_scheduler = contracts::membership_host::stateful_pointer<membership_state>;
using in_network_thread = contracts::membership_host::stateful_broker_pointer<membership_state>;
template void greet(on_scheduler, const hello&, const caf::strong_actor_ptr&, caf::typed_response_promise<welcome>);
template void greet(in_network_thread, const hello&, const caf::strong_actor_ptr&, caf::typed_response_promise<welcome>);
template void join(on_scheduler, const std::shared_ptr<join_task>&, const std::string&, std::uint16_t);
template void join(in_network_thread, const std::shared_ptr<join_task>&, const std::string&, std::uint16_t);

}  // namespace troupe::membership
