// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/greetings.hpp>

#include <algorithm>
#include <utility>

#include <caf/io/system_messages.hpp>
#include <caf/sec.hpp>

#include <troupe/actors/settings.hpp>
#include <troupe/messages/registration.hpp>

namespace troupe::membership {

namespace {

using std::chrono::nanoseconds;
using dial_end = member_table::dial_end;

constexpr nanoseconds retry_pause{100'000'000};
// The longest wait for a connection or an answer. After lost packets TCP waits longer and longer before it sends them again, so
// a new connection gets through sooner.
constexpr nanoseconds longest_try{15'000'000'000};
constexpr int pause_divisor = 8;  // the time since the first try, divided by this, is the pause before the next try
constexpr nanoseconds shortest_greeting{1'000'000'000};
constexpr nanoseconds longest_look_up{5'000'000'000};
constexpr nanoseconds name_patience{800'000'000};
constexpr nanoseconds news_patience{2'000'000'000};
constexpr nanoseconds longest_meeting{10'000'000'000};
constexpr nanoseconds mesh_patience{300'000'000};  // for nodes that another node has just named as up

std::string text_in_brackets(const caf::error& of) {
  const auto text = of.context().empty() ? std::string() : of.context().get_as<std::string>(0);
  return text.empty() ? "" : ": " + text;
}

/// Whether no node was found: no program listens at the address, no way leads to the host, or the name has no address.
bool is_nobody(const caf::error& problem) {
  return problem == caf::sec::cannot_connect_to_node || problem == errc::unknown_peer || problem == errc::misuse;
}

bool says_why(const caf::error& problem) { return problem.category() == caf::error(errc::refused).category(); }

/// `is_wanted`: whether the node that was greeted is the one that is looked for.
dial_end end_by(const caf::error& problem, bool is_wanted) {
  return problem == caf::sec::cannot_connect_to_node ? dial_end::nobody_listens
         : problem == caf::sec::unexpected_message   ? dial_end::another_listens
         : problem == errc::stopping && is_wanted    ? dial_end::is_stopping
                                                     : dial_end::not_reached;
}

/// The error text for a connection or greeting that failed. An error that the other node sent is returned unchanged.
caf::error explain(const member& at, const char* missing, std::int64_t waited_ns, const caf::error& from) {
  const auto waited = milliseconds_text(waited_ns);
  const auto where = address_text(at.host, at.port);
  if (says_why(from)) return from;
  if (from == caf::sec::disconnect_during_handshake)
    return make_error(errc::unknown_peer, "the program at " + where + " has ended the connection before a node answered" +
                                            text_in_brackets(from) + " (tried for " + waited +
                                            "); is it a node, and does it start or stop?");
  if (from == caf::sec::request_timeout)
    return make_error(errc::deadline_passed, std::string("no ") + missing + " from " + where + " within " + waited);
  if (from == caf::sec::unexpected_message) return make_error(errc::refused, "what listens at " + where + " is no troupe node");
  const auto* beyond = is_loopback(at.host) ? "" : ", does it listen beyond loopback (--host)";
  return make_error(errc::unknown_peer, "no node listens at " + where + " (tried for " + waited + "); is it started" + beyond +
                                          ", and are host and port right?");
}

/// The error for a node that was not accepted, because another process of its name has greeted since. The node greets again.
caf::error overtaken(const member& who) {
  return make_error(errc::unknown_peer, "another process has greeted as node '" + who.name + "' meanwhile");
}

}  // namespace

caf::error stopping_error(const member& self) { return make_error(errc::stopping, "node '" + self.name + "' is stopping"); }

caf::error stopping_error(const member& self, const hello& from) {
  if (from.to == node_id{} || from.to == self.id) return stopping_error(self);
  return make_error(errc::unknown_peer, "node '" + self.name + "' listens there, and is stopping");
}

greetings::effects greetings::on(greeting_event event, std::int64_t now_ns) {
  now_ = now_ns;
  std::visit([this](auto& what) { take(what); }, event);
  return std::exchange(out_, {});
}

template <class Waiting>
std::uint64_t greetings::put(Waiting&& what) {
  waiting_.emplace(new_number(), std::forward<Waiting>(what));
  return last_number_;
}

template <class Waiting>
std::optional<Waiting> greetings::end_wait(std::uint64_t wait) {
  const auto found = waiting_.find(wait);
  auto* const what = found == waiting_.end() ? nullptr : std::get_if<Waiting>(&found->second);
  if (what == nullptr) return std::nullopt;
  std::optional<Waiting> result = std::move(*what);
  waiting_.erase(found);
  return result;
}

/// This node, with the host by which the node at the other end of the route reaches it.
member greetings::self_for(const std::optional<route>& to) const {
  auto who = table_.self();
  who.host = host_to_tell(who.host, to);
  return who;
}

/// Another peer with the name of `who`; null if there is none. If `who` is that peer after a restart, this function makes the
/// old peer gone, and returns null.
const known_peer* greetings::living_rival(const member& who) {
  if (const auto* living = table_.living_rival(who)) return living;
  if (const auto* old = table_.rival(who))
    out_.emplace_back(table_.left(old->who.id, "replaced by a restarted node at the same address", now_));
  return nullptr;
}

/// A member that is no peer and has the name of `who` at another address; null if there is none.
const member* greetings::other_holder(const member& who) const {
  const auto* holder = table_.holder(who);
  return holder == nullptr || (holder->host == who.host && holder->port == who.port) ? nullptr : holder;
}

// Joins.

void greetings::take(join_begun& what) {
  what.how.open = 1;
  const auto until = joins_.emplace(what.join, std::move(what.how)).first->second.deadline_ns;
  dial({what.join, outgoing::purpose::named_by_user, {{}, {}, std::move(what.host), what.port}, now_, until});
}

join_progress* greetings::find_join(std::uint64_t number) {
  const auto found = joins_.find(number);
  return found == joins_.end() ? nullptr : &found->second;
}

/// Notes that one node of a join has answered or failed. A node that a welcome named may have ended just now, so its failure
/// does not matter. If such a node refuses this node, the join fails.
void greetings::settle(std::uint64_t number, bool first, caf::error problem) {
  auto& join = joins_.at(number);
  const bool is_refusal = problem == errc::refused || problem == errc::peer_down;
  if (problem && !join.failure && (first || is_refusal)) join.failure = std::move(problem);
  if (--join.open == 0) out_.emplace_back(join_ended{number, std::move(joins_.extract(number).mapped())});
}

std::vector<member_news> greetings::believed(node_id teller, std::vector<member_news> news,
                                             const std::optional<route>& by) const {
  if (how_.believes && !how_.believes(teller)) std::erase_if(news, [&](const auto& each) { return each.who.id != teller; });
  take_unreachable(news, by);
  return news;
}

/// Takes in what another node has heard, and greets the new neighbours.
void greetings::meet(std::uint64_t number, node_id from, std::vector<member_news> news, const std::optional<route>& by) {
  news = believed(from, std::move(news), by);
  out_.emplace_back(table_.hear_all(from, news, now_));
  auto& join = joins_.at(number);
  // Other nodes get half of the time that is left. So a node that can't be reached does not make the join miss its deadline
  // (ME-3).
  const auto until = now_ + (join.deadline_ns - now_) / 2;
  for (const auto& other : table_.take_strangers(now_)) {
    ++join.open;
    dial({number, outgoing::purpose::named_by_node, other, now_, until, other.id});
  }
  std::erase_if(news, [&](const member_news& each) { return !table_.heard_of().is_left_out(each.who.id); });
  if (news.empty()) return;
  // News about a restarted node may come before the news that its predecessor has ended. The join waits for the second news.
  ++join.open;
  const nanoseconds patience = (member_table::intervals_of_patience + 1) * how_.heartbeat;
  const nanoseconds left{std::max<std::int64_t>(join.deadline_ns - now_, 1)};
  out_.emplace_back(begin_pause{put(clash{number, std::move(news)}), std::min(patience, left)});
}

void greetings::take(news_introduced& what) {
  const auto number = new_number();
  joins_[number] = {.deadline_ns = now_ + longest_meeting.count(), .open = 1};  // open until all nodes are dialled
  meet(number, what.by_peer, std::move(what.news), what.by);
  settle(number, false, {});
}

/// Ends a join's wait for news. The join fails if one of the names still belongs to another node.
void greetings::look_at(const clash& names) {
  caf::error problem;
  for (const auto& each : names.news)
    if (!problem && table_.heard_of().is_left_out(each.who.id))
      problem = make_error(errc::refused, "the name '" + each.who.name + "' of node " + describe(each.who) +
                                            " is taken by another node; give one of them another name");
  settle(names.join, false, std::move(problem));
}

// Greetings of this node.

/// Begins a greeting of a peer, or of a member that is to become a peer.
greetings::outgoing greetings::begin_again(const member& who) {
  // If a packet of a dial is lost, TCP sends it again only after a second. So a dial of a peer is short: the next dial reaches
  // the peer sooner. For a member that is no peer, the look-up of its host name may take longer.
  const auto least = table_.find(who.id) != nullptr ? shortest_greeting : longest_look_up;
  const auto until = now_ + std::max<nanoseconds>(least, 4 * how_.heartbeat).count();
  const auto number = new_number();
  joins_[number] = {.deadline_ns = until, .open = 1};
  return {number, outgoing::purpose::asked_by_table, who, now_, until, who.id};
}

void greetings::take(const dial_wanted& what) {
  if (!has_stopped_) dial(begin_again(what.whom));
}

void greetings::take(const greeting_wanted& what) {
  if (const auto* peer = table_.find(what.peer); peer != nullptr && peer->is_connected && !has_stopped_)
    greet(begin_again(peer->who), peer->gateway);
}

nanoseconds greetings::time_left(const outgoing& to) const {
  return nanoseconds(std::max<std::int64_t>(to.until_ns - now_, 1));
}

void greetings::dial(outgoing to) {
  to.is = outgoing::state::dials;
  const auto patience = std::min(time_left(to), longest_try);
  dial_address what{0, to.whom.host, to.whom.port, patience};
  what.wait = put(std::move(to));
  out_.emplace_back(std::move(what));
}

void greetings::greet(outgoing to, const caf::strong_actor_ptr& gateway) {
  const auto& own = table_.self();
  to.is = outgoing::state::greets;
  const auto patience = std::min(time_left(to), std::max<nanoseconds>(shortest_greeting, 4 * how_.heartbeat));
  say_hello what{0, to.whom, gateway, {}, patience};
  what.greeting = {own.name, own.id, own.host, own.port, protocol_version};
  what.greeting.digest = table_.heard_of().digest(own.id, to.greeted);
  what.greeting.to = to.greeted;
  what.greeting.between = table_.between(to.greeted);
  what.greeting.to_name = to.whom.name;
  what.greeting.incarnation = table_.heard_of().incarnation();
  what.greeting.formats = own.formats;
  what.greeting.devices = own.devices;
  what.wait = put(std::move(to));
  out_.emplace_back(std::move(what));
}

void greetings::pause_before_dial(outgoing to, nanoseconds time) {
  to.is = outgoing::state::pauses;
  out_.emplace_back(begin_pause{put(std::move(to)), time});
}

/// Tells the table how a dial that the table has asked for has ended.
void greetings::end_dial(const outgoing& to, dial_end how, const std::string& why) {
  if (to.whom.id != node_id{}) out_.emplace_back(table_.dialled(to.whom.id, how, now_, why));
}

void greetings::take(const address_connected& what) {
  const auto to = end_wait<outgoing>(what.wait);
  if (!to) return;
  if (!what.is_itself || !to->is_first()) return greet(*to, what.gateway);
  joins_.at(to->join).is_itself = true;
  settle(*to, make_error(errc::refused, table_.objection(table_.self(), table_.self())));
}

void greetings::take(hello_welcomed& what) {
  auto waited = end_wait<outgoing>(what.wait);
  if (!waited) return;
  auto& to = *waited;
  auto& [wait, answer, gateway, by] = what;
  auto& who = answer.self;
  if (!to.whom.name.empty() && who.name != to.whom.name) {
    end_dial(to, dial_end::another_listens, "node '" + who.name + "' listens there");
    return settle(to, {});
  }
  who.host = host_to_reach(who.host, by);
  end_dial(to, who.id == to.whom.id ? dial_end::reached : dial_end::another_listens,
           "another process listens there as node '" + who.name + "'");
  if (const auto* known = table_.find(who.id); known == nullptr || known->who.name != who.name) {
    auto objection = table_.objection(who, self_for(by));
    const auto* rival = objection.empty() ? living_rival(who) : nullptr;
    const auto* holder = rival != nullptr ? &rival->who : other_holder(who);
    if (objection.empty() && holder != nullptr)
      objection = "the name of node " + describe(who) + " is taken by node " + describe(*holder);
    // The member of that name may have ended, and this node may not know it yet: the table dials again.
    if (!objection.empty() && !to.is_first() && holder != nullptr) return settle(to, {});
    if (!objection.empty()) {
      out_.emplace_back(say_farewell{to.whom, gateway, objection});
      return settle(to, make_error(errc::refused, std::move(objection)));
    }
  }
  if (!is_accepted(who.id)) {
    if (to.why == outgoing::purpose::asked_by_table) return settle(to, {});  // the table dials again
    if (now_ + retry_pause.count() >= to.until_ns) return settle(to, overtaken(who));
    return pause_before_dial(std::move(to), retry_pause);
  }
  out_.emplace_back(table_.met(who, gateway, answer.between, member_table::way::answers, now_, answer.incarnation));
  if (table_.between(who.id) != answer.between && now_ < to.until_ns) {
    to.greeted = who.id;  // by this greeting the other node learns this node's bond, and takes it over
    return greet(std::move(to), gateway);
  }
  if (to.is_first()) {
    auto& join = joins_.at(to.join);
    join.first = who;
    join.met_ns = now_;
    join.seen = {};
    join.deadline_ns = std::min(join.deadline_ns, now_ + longest_meeting.count());
  }
  if (!answer.news.empty()) {  // otherwise the two nodes have heard the same
    meet(to.join, who.id, answer.news, by);
    out_.emplace_back(introduce{who.id, table_.heard_of().beyond(answer.news)});
  }
  settle(to, {});
  if (to.is_first() && joins_.contains(to.join)) out_.emplace_back(join_changed{to.join});
}

/// Tries again, unless the other node has said why it refuses this node. A handshake may have been cut, packets may be lost, or
/// the gateway may not know its node yet. If two nodes dial each other at the same moment, CAF drops one of the connections,
/// and messages on it may be lost. If no program listens at the address, this node tries only for a while.
void greetings::take(const try_failed& what) {
  const auto to = end_wait<outgoing>(what.wait);
  if (!to) return;
  const auto& problem = what.problem;
  auto& join = joins_.at(to->join);
  const auto* missing = to->is == outgoing::state::greets ? "answer to the greeting" : "answer";
  auto reason = explain(to->whom, missing, now_ - to->begun_ns, problem);
  const bool is_of_table = to->why == outgoing::purpose::asked_by_table;  // the table dials again
  const auto patience = to->is_first() ? how_.patience : std::min(how_.patience, mesh_patience);
  const auto time =
    std::clamp(nanoseconds((now_ - to->begun_ns) / pause_divisor), retry_pause, std::max(retry_pause, join.longest_pause));
  const auto next = now_ + time.count();
  const bool is_patient =
    (to->is_first() && join.is_patient) || (is_nobody(problem) ? next < to->begun_ns + patience.count() : !says_why(problem));
  if (!is_of_table && reason != errc::refused && is_patient && next < to->until_ns) {
    pause_before_dial(*to, time);
    if (!to->is_first()) return;
    join.seen = std::move(reason);
    out_.emplace_back(join_changed{to->join});
    return;
  }
  end_dial(*to, end_by(problem, to->greeted == to->whom.id), to_exception(reason).what());
  settle(*to, is_of_table ? caf::error{} : std::move(reason));
}

void greetings::take(const pause_over& what) {
  if (auto to = end_wait<outgoing>(what.wait)) return dial(std::move(*to));
  if (auto from = end_wait<incoming>(what.wait)) return judge(std::move(*from));
  if (const auto names = end_wait<clash>(what.wait)) look_at(*names);
}

// Greetings of other nodes.

void greetings::take(hello_came& what) {
  const auto& [caller, from, gateway, by] = what;
  const auto& own = table_.self();
  member who{from.name, from.id, from.host, from.port, from.formats, from.devices};
  if (from.protocol != protocol_version)
    return refuse(caller, who,
                  "node " + describe(who) + " speaks version " + std::to_string(from.protocol) + " of the protocol, node '" +
                    own.name + "' version " + std::to_string(protocol_version) + "; run one release of troupe on both");
  if (const auto why = table_.objection(who, self_for(by)); !why.empty()) return refuse(caller, who, why);
  if (!from.to_name.empty() && from.to_name != own.name)  // nothing is wrong with the node that greets
    return refuse(caller, who,
                  "node " + describe(who) + " looks for node '" + from.to_name + "' at the address of node '" + own.name + "'",
                  errc::unknown_peer);
  if (const auto why = unreachable(who, by); !why.empty()) return refuse(caller, who, why);
  who.host = host_to_reach(who.host, by);
  judge({caller, from, gateway, std::move(who), name_patience});
}

/// `code`: refused if the node is wrong, peer_down or unknown_peer if the same greeting may be accepted later.
void greetings::refuse(std::uint64_t caller, const member& who, const std::string& reason, errc code) {
  out_.emplace_back(refuse_hello{caller, make_error(code, reason), "refused node " + describe(who) + ": " + reason});
}

void greetings::refuse_name(const incoming& from, const member& held_by, const std::string& advice, errc code) {
  refuse(from.caller, from.who, "the name '" + from.who.name + "' is taken by node " + describe(held_by) + advice, code);
}

/// Decides about a greeting: admits the node, refuses it, or waits until this node knows who has the name.
void greetings::judge(incoming from) {
  using state = incoming::state;
  const auto patience = 2 * how_.heartbeat;
  if (const auto* rival = living_rival(from.who); rival != nullptr && rival->is_up) {
    // The holder of the name may have ended just now. So this node asks the holder. If the holder answers, the greeting is
    // refused. Otherwise the holder is suspected, and the greeting is judged again.
    from.held_by = rival->who;
    from.is = state::asks_rival;
    out_.emplace_back(ask_rival{put(std::move(from)), rival->who.id, patience});
  } else if (rival != nullptr && (from.left > retry_pause || now_ - rival->lost_ns < news_patience.count())) {
    pause_before_judgement(std::move(from), retry_pause);
  } else if (rival != nullptr) {
    refuse_name(from, rival->who,
                ", which is unreachable; choose another one, or try again once that node is gone (after " +
                  milliseconds_text(how_.forget_after.count()) + ")",
                errc::peer_down);
  } else if (const auto* holder = other_holder(from.who)) {
    table_.contest(holder->id, now_);
    from.held_by = *holder;
    from.is = state::asks_holder;
    out_.emplace_back(ask_holder{put(std::move(from)), holder->id, patience});
  } else if (!is_accepted(from.who.id)) {
    out_.emplace_back(refuse_hello{from.caller, overtaken(from.who), {}});
  } else {
    const auto& said = from.from;
    const auto theirs = said.to == table_.self().id ? said.between : bond{};
    out_.emplace_back(table_.met(from.who, from.gateway, theirs, member_table::way::hears, now_, said.incarnation));
    welcome answer{table_.self(), table_.news_for(said.id, said.digest), table_.between(said.id),
                   table_.heard_of().incarnation()};
    out_.emplace_back(accept_hello{from.caller, std::move(from.gateway), std::move(answer)});
  }
}

/// `cost`: how much of the time that the greeting may wait is used up.
void greetings::pause_before_judgement(incoming from, nanoseconds cost) {
  from.left -= cost;
  from.is = incoming::state::pauses;
  out_.emplace_back(begin_pause{put(std::move(from)), retry_pause});
}

void greetings::take(const holder_answered& what) {
  auto from = end_wait<incoming>(what.wait);
  if (!from) return;
  if (from->is == incoming::state::asks_rival) return refuse_name(*from, from->held_by, other_name, errc::refused);
  from->left -= (2 * how_.heartbeat + retry_pause);
  judge(std::move(*from));
}

void greetings::take(const holder_silent& what) {
  auto from = end_wait<incoming>(what.wait);
  if (!from) return;
  if (from->is == incoming::state::asks_rival) {
    out_.emplace_back(table_.suspect(from->held_by.id, now_));
    return judge(std::move(*from));
  }
  if (other_holder(from->who) != nullptr && from->left <= 2 * how_.heartbeat + retry_pause)
    return refuse_name(*from, from->held_by, ", which does not answer; choose another one, or try again later",
                       errc::peer_down);
  pause_before_judgement(std::move(*from), 2 * how_.heartbeat + retry_pause);
}

void greetings::take(const node_stopped&) {
  has_stopped_ = true;
  for (const auto& [wait, what] : std::exchange(waiting_, {}))
    if (const auto* from = std::get_if<incoming>(&what))
      out_.emplace_back(refuse_hello{from->caller, stopping_error(table_.self(), from->from), {}});
  for (auto& [number, join] : std::exchange(joins_, {})) {
    join.failure = stopping_error(table_.self());
    out_.emplace_back(join_ended{number, std::move(join)});
  }
}

}  // namespace troupe::membership
