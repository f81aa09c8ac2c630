// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>

#include <troupe/actors/membership/member_table.hpp>
#include <troupe/actors/membership/route.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::membership {

/// The settings of a node's greetings.
struct greeting_settings {
  std::chrono::nanoseconds heartbeat{250'000'000};
  std::chrono::nanoseconds forget_after{30'000'000'000};
  std::chrono::nanoseconds patience{5'000'000'000};  // how long a join retries an address where no program listens yet
  std::function<bool(node_id)>
    accept;  // asked before a node becomes a member. False: another process of its name has greeted since;
             // empty: as if always true
  std::function<bool(node_id)> believes;  // whether this peer's news about other nodes count; empty: every peer's do
};

/// A join: this node greets the node that the user named, then the neighbours that the named node tells of.
struct join_progress {
  std::int64_t deadline_ns = 0;
  bool is_patient = false;  // whether an address where no program listens is tried until the deadline
  std::chrono::nanoseconds longest_pause{1'000'000'000};  // between two tries of the first node
  member first = {};                                      // the node that the user named, once it has taken this node in
  std::int64_t met_ns = 0;                                // when `first` has taken this node in
  std::size_t open = 0;                                   // number of nodes that have not answered
  caf::error failure = {};                                // why the join fails
  caf::error seen = {};                                   // the error of the last try, until the first node answers
  bool is_itself = false;                                 // whether the address leads to this node
};

/// What the runtime around the greetings has to do. `wait`: a number; the event that ends the wait carries the same number.
struct dial_address {  // ends with address_connected or try_failed
  std::uint64_t wait;
  std::string host;
  std::uint16_t port;
  std::chrono::nanoseconds patience;
};
struct say_hello {  // ends with hello_welcomed or try_failed
  std::uint64_t wait;
  member whom;  // the address alone, if this node knows no more
  caf::strong_actor_ptr gateway;
  hello greeting;
  std::chrono::nanoseconds patience;
};
struct question {  // ends with holder_answered or holder_silent
  std::uint64_t wait;
  node_id whom;
  std::chrono::nanoseconds patience;
};
struct ask_rival : question {};   // a heartbeat to a peer
struct ask_holder : question {};  // a search for a member that is no peer
struct begin_pause {              // ends with pause_over
  std::uint64_t wait;
  std::chrono::nanoseconds time;
};
struct accept_hello {
  std::uint64_t caller;
  caf::strong_actor_ptr gateway;  // of the new peer
  welcome answer;
};
struct refuse_hello {
  std::uint64_t caller;
  caf::error why;
  std::string warning;  // for the log; empty: nothing is wrong
};
struct say_farewell {
  member whom;
  caf::strong_actor_ptr gateway;
  std::string reason;
};
struct introduce {  // tells a new peer the news of this node that the peer lacks
  node_id to;
  std::vector<member_news> news;
};
struct join_changed {  // `first` or `seen` of the join has changed
  std::uint64_t join;
};
struct join_ended {
  std::uint64_t join;
  join_progress how;
};
using greeting_effect = std::variant<member_steps, dial_address, say_hello, ask_rival, ask_holder, begin_pause, accept_hello,
                                     refuse_hello, say_farewell, introduce, join_changed, join_ended>;

/// The events that happen. `by`: the route to the other node.
struct join_begun {  // this node has to connect to host:port, and to greet the node there and its neighbours
  std::uint64_t join;
  join_progress how;
  std::string host;
  std::uint16_t port;
};
struct dial_wanted {  // the table wants a dial
  member whom;
};
struct greeting_wanted {  // the table wants a greeting over the existing connection
  node_id peer;
};
struct news_introduced {  // a peer tells all that it has heard
  node_id by_peer;
  std::vector<member_news> news;
  std::optional<route> by;
};
struct hello_came {
  std::uint64_t caller;
  hello from;
  caf::strong_actor_ptr gateway;
  std::optional<route> by;
};
struct address_connected {
  std::uint64_t wait;
  caf::strong_actor_ptr gateway;
  bool is_itself = false;  // whether the address leads to this node
};
struct hello_welcomed {
  std::uint64_t wait;
  welcome answer;
  caf::strong_actor_ptr gateway;
  std::optional<route> by;
};
struct try_failed {
  std::uint64_t wait;
  caf::error problem;
};
struct holder_answered {
  std::uint64_t wait;
};
struct holder_silent {
  std::uint64_t wait;
};
struct pause_over {
  std::uint64_t wait;
};
struct node_stopped {};  // all greetings and joins end
using greeting_event = std::variant<join_begun, dial_wanted, greeting_wanted, news_introduced, hello_came, address_connected,
                                    hello_welcomed, try_failed, holder_answered, holder_silent, pause_over, node_stopped>;

caf::error stopping_error(const member& self);
/// The answer of a node that stops to a greeting, which may be for another node at this address.
caf::error stopping_error(const member& self, const hello& from);

/// Decides how nodes get to know each other: greetings of this node to others, greetings of others to this node, and joins.
/// This class sends no message and reads no clock. It asks the node by `accept` and `believes` of the settings.
///
///   greeting of this node    waits for                               next
///   dials                    a connection to the address             address_connected: greets. try_failed: pauses, or the end
///   greets                   the welcome                             hello_welcomed: the end; greets once more, if the bonds
///                                                                    of the two nodes differ; pauses, if `accept` says no.
///                                                                    try_failed: pauses, or the end
///   pauses                   the next try                            pause_over: dials
///
///   greeting of another      waits for                               next
///   asks_rival               an answer of the peer with its name     holder_answered: refused. holder_silent: judged anew
///   asks_holder              a search for the member with its name   holder_answered: judged anew. holder_silent: pauses, or
///                                                                    refused
///   pauses                   the end of the node with its name       pause_over: judged anew
///
///   GN-1  a wait ends with one event: an event that comes late, or twice, changes nothing.
///   GN-2  no two peers have one name. A node gets the name of a peer only if that peer is gone, or is unreachable and has the
///         node's address: no two programs listen at one address. A peer that does not answer when another node claims its name
///         is unreachable.
///   GN-3  each greeting of another node gets one answer. The answer may wait for another node that has the name: for
///         `name_patience`, or until that node has been unreachable for `news_patience`.
///   GN-4  a join ends once. No dial of a join is planned for later than the join's deadline, and nothing begins after
///         node_stopped.
///   GN-5  when a dial that the table has asked for ends, the table is told how it ended.
class greetings {
 public:
  using effects = std::vector<greeting_effect>;

  /// `table`: of the same node. The greetings tell the table who was met, and who is gone.
  greetings(member_table& table, const greeting_settings& how) : table_(table), how_(how) {}

  /// Takes in one event. Returns the effects that the caller has to carry out, in this order.
  effects on(greeting_event event, std::int64_t now_ns);
  /// Returns a new number for a join or a caller.
  std::uint64_t new_number() noexcept { return ++last_number_; }
  /// Returns the join with this number; null if it does not run.
  join_progress* find_join(std::uint64_t number);
  /// Returns the news that count. Drops news about members that can't be reached and, if `teller` is not believed, all news
  /// about other nodes than `teller`.
  std::vector<member_news> believed(node_id teller, std::vector<member_news> news, const std::optional<route>& by) const;

 private:
  /// A greeting that this node sends, for a join or because the table has asked for it.
  struct outgoing {
    enum class purpose { named_by_user, named_by_node, asked_by_table };
    enum class state { dials, greets, pauses };

    std::uint64_t join;
    purpose why;
    member whom;  // the node to greet; only its address, if the user named an address
    std::int64_t begun_ns;
    std::int64_t until_ns;
    node_id greeted = {};  // the node that listens at the address, as far as this node knows
    state is = state::dials;

    bool is_first() const noexcept { return why == purpose::named_by_user; }
  };
  /// A greeting that another node has sent to this node.
  struct incoming {
    enum class state { asks_rival, asks_holder, pauses };

    std::uint64_t caller;
    hello from;
    caf::strong_actor_ptr gateway;
    member who;                     // the node that greets, with the host by which this node reaches it
    std::chrono::nanoseconds left;  // how long the greeting may wait
    member held_by = {};            // the node that has the name
    state is = state::pauses;
  };
  /// News that a join has heard about nodes whose names belong to other nodes. These other nodes may have ended.
  struct clash {
    std::uint64_t join;
    std::vector<member_news> news;
  };

  template <class Waiting>
  std::uint64_t put(Waiting&& what);
  template <class Waiting>
  std::optional<Waiting> end_wait(std::uint64_t wait);

  void take(join_begun& what);
  void take(const dial_wanted& what);
  void take(const greeting_wanted& what);
  void take(news_introduced& what);
  void take(hello_came& what);
  void take(const address_connected& what);
  void take(hello_welcomed& what);
  void take(const try_failed& what);
  void take(const holder_answered& what);
  void take(const holder_silent& what);
  void take(const pause_over& what);
  void take(const node_stopped& what);

  outgoing begin_again(const member& who);
  std::chrono::nanoseconds time_left(const outgoing& to) const;
  void dial(outgoing to);
  void greet(outgoing to, const caf::strong_actor_ptr& gateway);
  void pause_before_dial(outgoing to, std::chrono::nanoseconds time);
  void end_dial(const outgoing& to, member_table::dial_end how, const std::string& why);
  void settle(std::uint64_t join, bool first, caf::error problem);
  void settle(const outgoing& to, caf::error problem) { settle(to.join, to.is_first(), std::move(problem)); }
  void meet(std::uint64_t join, node_id from, std::vector<member_news> news, const std::optional<route>& by);
  void look_at(const clash& names);
  void judge(incoming from);
  void pause_before_judgement(incoming from, std::chrono::nanoseconds cost);
  void refuse(std::uint64_t caller, const member& who, const std::string& reason, errc code = errc::refused);
  void refuse_name(const incoming& from, const member& held_by, const std::string& advice, errc code);
  const known_peer* living_rival(const member& who);
  const member* other_holder(const member& who) const;
  bool is_accepted(node_id who) const { return !how_.accept || how_.accept(who); }
  member self_for(const std::optional<route>& to) const;

  member_table& table_;
  const greeting_settings& how_;
  std::int64_t now_ = 0;
  effects out_;
  bool has_stopped_ = false;
  std::uint64_t last_number_ = 0;
  std::unordered_map<std::uint64_t, join_progress> joins_;
  std::unordered_map<std::uint64_t, std::variant<outgoing, incoming, clash>> waiting_;
};

}  // namespace troupe::membership
