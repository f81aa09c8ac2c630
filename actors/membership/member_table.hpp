// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_control_block.hpp>

#include <troupe/actors/membership/known_members.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::membership {

/// News about a peer, or about a member that this node is not connected to (`known`, `lost`, `clash`).
struct peer_change {
  enum class kind {
    up,
    up_again,
    unreachable,
    gone,
    known,  // other nodes say that the member is up; this node connects to it when it needs the member
    lost,   // other nodes say that the member is unreachable or gone
    clash   // the member is left out: it has the name of another member, or there are too many members
  };

  kind what;
  member who;
  caf::strong_actor_ptr gateway;
  std::string reason;        // why the peer is unreachable or gone
  std::uint64_t period = 0;  // see contracts::peer_up
  std::int64_t away_ns = 0;  // how long a peer that is up again was unreachable
  bool is_gone = false;      // for `lost`: whether the member is gone or has left
};

/// A member that other nodes know and that this node can't connect to.
struct obstacle {
  member who;
  std::string why;  // empty: this node can connect to the member again
};

/// What the membership actor has to do, in the order of the fields.
struct member_steps {
  std::vector<peer_change> changes;         // to be told to the subscribers
  std::vector<obstacle> obstacles;          // to be told to the subscribers
  std::vector<caf::strong_actor_ptr> cuts;  // connections to these gateways have to be cut
  std::vector<node_id> beats;               // a heartbeat has to be sent now
  std::vector<node_id> greets;              // peers that have to be greeted once more
  std::vector<member> dials;                // nodes to connect to and to greet; dialled() tells how that ended
  std::vector<std::pair<node_id, std::vector<member_news>>> tells;  // news for peers
  bool passes_on = false;                                           // whether pass_on() has to be called after a short time
};

/// Decides which nodes are up, unreachable or gone. This class sends no message and reads no clock. A peer is a node that is up
/// or unreachable. The roster stores what other nodes say about members that this node is not connected to. The states of a
/// node, as this node sees it:
///
///   state        meaning                                        next state
///   unknown      this node has never met the node               met(): up
///   up           the node answers heartbeats                    beat(), if `allowed_misses` heartbeats in a row had no answer,
///                                                               or suspect(), or connection_lost(): unreachable
///   unreachable  calls and passes with the node have failed,    answered() or met(), once both nodes have the same bond: up
///                but its objects and contexts stay              dialled(), if the node's process has ended, or beat() after
///                                                               `forget_after`: gone
///   gone         all that the two nodes shared is dropped       met(), once both nodes have the same bond: up
///
/// A farewell makes a peer gone at once. If another node tells a higher count (see `bond`), this node takes the same step as
/// the other node: it takes the other node for unreachable, or for gone. If a node claims the name of a member, the member is
/// dialled at once. If no program listens at the member's address, the node is the member's successor. A peer that gets no
/// heartbeats costs no message. The neighbours of a node take turns in getting heartbeats, so their number does not change how
/// many heartbeats are sent.
///   MT-1  a peer is up only while a connection to it is open and, as far as this node knows, both nodes have the same bond. An
///         answer that comes after the end of its connection brings no peer up.
///   MT-2  an unreachable peer is dialled again and again. A node that is gone and said no farewell is dialled for an hour, or
///         until another node listens at its address.
///   MT-3  of the nodes that are gone, the table keeps the newest `most_gone`.
///   MT-4  in each interval a heartbeat goes to peers that share work with this node, are suspected by others, are unreachable,
///         or have not answered. The other neighbours (see roster) take turns, `most_in_turn` an interval. A peer that is up
///         here is told that others suspect it, until it contradicts.
///   MT-5  a neighbour that is no peer yet is dialled: at once if this node has just met the node that told of it, otherwise
///         after `intervals_to_meet`. A new neighbour is up here once this node is connected to it, whatever other nodes say.
///   MT-6  a member that somebody looks for is dialled until it is a peer, or the search is over. If the first such dial fails,
///         this tells nothing about the member, because the member may have dialled this node at the same moment. It does tell
///         something if no program, or another program, listens at the member's address.
///   MT-7  while a member is no peer, after each `known` comes at most one `lost` that is not `is_gone`, and then at most one
///         that is. At least one `lost` comes before the next `known`.
///   MT-8  this node says that a member is gone only if no program listens at the member's address. In addition, the connection
///         must have ended, or another node must claim the name. A member that does not answer this node, or can't be connected
///         to, is only suspected, because other nodes may reach it. A member that is dialled and answers that it is stopping
///         has left.
///   MT-9  a node is not dialled while it has a living rival (living_rival()). Otherwise the greeting would make this node a
///         peer of the other node, but the other node no peer of this node.
///   MT-10 a member that this node can't connect to and was never connected to is reported once, with the reason. It is
///         reported once more when this node can connect to it.
class member_table : public known_members {
 public:
  static constexpr int allowed_misses = 3;
  /// A peer that leaves this many heartbeats in a row unanswered is unreachable, even if other bytes come from it. By default
  /// this takes a minute. By then calls that wait for its answers have ended too.
  static constexpr int most_misses = 240;
  /// The connection to an unreachable peer is cut after this many intervals without an answer. A new connection then carries
  /// bytes sooner than the old one, because TCP sends lost bytes again after pauses that grow.
  static constexpr int intervals_to_cut = 8;
  static constexpr std::size_t most_gone = 1024;
  static constexpr std::size_t most_in_turn = 2;
  /// Each time this many intervals are over, a neighbour is greeted once more. The neighbours take turns.
  static constexpr int intervals_to_greet = 20;
  static constexpr int intervals_to_meet = 4;
  /// A suspected member has this many intervals to contradict.
  static constexpr int intervals_of_patience = 6;

  struct times {
    std::chrono::nanoseconds heartbeat{250'000'000};
    std::chrono::nanoseconds forget_after{30'000'000'000};
    std::size_t most_in_mesh = roster::limits().most_in_mesh;
    std::uint64_t rings = roster::limits().rings;
  };

  explicit member_table(member self = {}) : member_table(std::move(self), times()) {}
  member_table(member self, times limits);
  /// A table that knows of other members already.
  member_table(roster known, times limits);

  void set_port(std::uint16_t port);
  /// Says that `who` has greeted this node (`hears`) or has answered a greeting (`answers`). `theirs`: the bond of `who` with
  /// this node. An unreachable peer that greets is not up yet, because this node may hear the peer and not reach it. Pre:
  /// objection() is empty, and living_rival() is null.
  enum class way { hears, answers };
  member_steps met(const member& who, caf::strong_actor_ptr gateway, const bond& theirs, way how, std::int64_t now_ns,
                   std::uint32_t incarnation = 0);

  /// Takes in news that a peer has passed on.
  member_steps hear(node_id from, const std::vector<member_news>& news, std::int64_t now_ns);
  /// Takes in all news of another node, in a greeting.
  member_steps hear_all(node_id from, const std::vector<member_news>& news, std::int64_t now_ns);
  /// Returns the neighbours that are no peers yet. The caller has to dial them now, and to call dialled() for each (MT-5).
  std::vector<member> take_strangers(std::int64_t now_ns);
  /// Returns the waiting news for the neighbours. To be called soon after `passes_on` was true.
  member_steps pass_on();
  /// Says that somebody looks for a member until `until_ns` (MT-6). Returns no steps if no member has the name or id, or if it
  /// is a peer.
  member_steps want(const std::string& name, std::int64_t until_ns, std::int64_t now_ns);
  member_steps want(node_id who, std::int64_t until_ns, std::int64_t now_ns);
  /// Says that another node claims the name of a member that is no peer. The next dial of the member decides who has the name
  /// (MT-8).
  void contest(node_id holder, std::int64_t now_ns);
  /// Says that a peer has sent a heartbeat. `theirs`: the bond of the peer with this node.
  member_steps heard(node_id from, const bond& theirs, std::int64_t now_ns);
  /// Says that a peer has answered a heartbeat. `theirs`: the bond of the peer with this node.
  member_steps answered(node_id by, const bond& theirs, std::int64_t now_ns);
  /// To be called once in each interval of heartbeats. `hears`: whether other bytes came from the peer lately. `shares`:
  /// whether this node shares work with the peer; empty: with every peer.
  member_steps beat(std::int64_t now_ns, const std::function<bool(const known_peer&)>& hears,
                    const std::function<bool(node_id)>& shares = {});
  /// Says that a peer that is up did not answer when another node claimed its name.
  member_steps suspect(node_id who, std::int64_t now_ns);
  /// Says that the connection to a peer is lost.
  member_steps connection_lost(node_id of, std::int64_t now_ns);
  /// How a dial ended. dialled() has to be called at the end of each dial.
  enum class dial_end { reached, not_reached, nobody_listens, another_listens, is_stopping };
  member_steps dialled(node_id who, dial_end how, std::int64_t now_ns, const std::string& why = {});
  /// Says that the peer is gone, for a reason that it gave itself, or because another node has taken its address.
  member_steps left(node_id who, const std::string& reason, std::int64_t now_ns);

 private:
  void meet(const member& who, caf::strong_actor_ptr gateway, const bond& theirs, way how, std::int64_t now_ns,
            member_steps& to);
  std::vector<node_id> listeners() const;
  /// Whether a peer gets heartbeats: in each interval, in its turn among the neighbours, or not at all.
  enum class watch { always, in_turn, none };
  watch watch_of(const known_peer& peer, const std::function<bool(node_id)>& shares) const;
  bool has_turn(node_id neighbour) const;
  void meet_strangers(std::int64_t now_ns, member_steps& to);
  void dial_gone(std::int64_t now_ns, member_steps& to);
  static void wait_longer(redialling& dial, std::int64_t now_ns);
  void note_news(std::int64_t now_ns, member_steps& to);
  void tell_known(const member& who, member_steps& to);
  void tell_lost(const member& who, const std::string& reason, bool is_gone, member_steps& to);
  stranger& add_stranger(node_id id, std::int64_t now_ns);
  void forget_stranger(const member& who, member_steps& to);
  void take_over(node_id from, const bond& theirs, std::int64_t now_ns, member_steps& to);
  void lose(known_peer& peer, const std::string& reason, std::int64_t now_ns, member_steps& to);
  void separate(known_peer& peer, const std::string& reason, std::int64_t now_ns, member_steps& to);
  void revive(known_peer& peer, std::int64_t now_ns, member_steps& to);
  enum class end { left, out_of_reach, ended, replaced };
  void forget(node_id who, const std::string& reason, end how, std::int64_t now_ns, member_steps& to);
  void greet_next(member_steps& to);
  void drop_oldest();

  times limits_;
  std::uint64_t last_period_ = 0;
  std::uint64_t beats_ = 0;
  node_id last_greeted_;
  bool will_pass_on_ = false;
};

}  // namespace troupe::membership
