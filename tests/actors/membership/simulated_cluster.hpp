// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/actors/membership/greetings.hpp>

#include "simulation/event_queue.hpp"
#include "simulation/simulated_network.hpp"

namespace troupe::test {

/// A cluster of tables of members on a simulated network and its clock. Each node runs the code that decides in a real node
/// (member_table, roster and greetings). Messages take a drawn time and may be lost, links are cut and mended, connections break, nodes
/// freeze, end, restart, and claim names of others. All is drawn from one seed.
///   SC-1  the news of a node about a peer alternate as ME-1 says, and no two peers of a node have one name (GN-2); otherwise the
///         simulation throws std::logic_error.
class simulated_cluster {
 public:
  static constexpr std::int64_t ms = 1'000'000;

  struct settings {
    std::size_t count = 3;
    std::uint64_t seed = 1;
    membership::member_table::times limits{std::chrono::milliseconds(100), std::chrono::milliseconds(3000)};
    std::int64_t longest_way_ns = 30 * ms;  // a message takes up to this time
    bool is_meshed = false;                 // whether all nodes know each other at the start, and their neighbours are peers
    bool share_work = true;                 // whether every two peers share work, so that they exchange heartbeats
    bool loses_what_is_cut = true;          // whether messages are lost on a way that is cut; with TCP they come late
    bool has_rivals = false;                // whether nodes claim names of others, when things go wrong
    std::uint64_t overtaken_one_of = 0;    // of so many nodes that greet, one greets again because of a second process; 0: none
    bool counts_bytes = false;             // whether messages have their bytes on the wire, or none
    simulation::network_costs costs = {};  // the jitter is longest_way_ns

    /// A cluster in which all nodes know each other and share no work, with the limits of a real node.
    static settings meshed(std::size_t count, std::uint64_t seed = 1);
  };

  explicit simulated_cluster(settings how);

  simulation::event_queue& clock() noexcept { return clock_; }
  simulation::simulated_network& network() noexcept { return network_; }
  /// Told of each change that the table of a node has told, after SC-1 was checked.
  std::function<void(std::size_t at, const membership::peer_change&)> on_change;
  /// Whether a node shares work with another one; empty: as settings::share_work says.
  std::function<bool(std::size_t at, node_id with)> shares;

  /// Lets time pass. With `faults` things go wrong.
  void pass(std::int64_t ns, bool faults = false);
  std::int64_t now_ns() const noexcept { return clock_.now_ns(); }
  std::int64_t interval_ns() const noexcept { return how_.limits.heartbeat.count(); }

  /// Mends all links, wakes all nodes, and starts those that have ended.
  void heal();
  /// From now on the node answers nothing. Its connections stand.
  void freeze(std::size_t which) { network_.freeze(which); }
  /// Ends the process of the node. Its peers see their connections end.
  void kill(std::size_t which);
  /// Stops the node, which says farewell to its peers.
  void leave(std::size_t which);
  /// Starts a new node at the address of a node that has ended. `name`: empty: the name that belongs to the address.
  void start(std::size_t which, const std::string& name = {});
  /// Starts one more node, which joins by the node `at`. Returns its number.
  std::size_t join(std::size_t at);
  /// The node joins again by the node that it joined at first.
  void join_again(std::size_t which) { hosts_[which].has_joined = false; }
  /// No message passes between the two nodes. The second one may join later.
  void cut(std::size_t a, std::size_t b) {
    network_.cut_way(a, b);
    network_.cut_way(b, a);
  }
  /// The host of `to` refuses connections from the host of `from`, as a firewall does.
  void reject(std::size_t from, std::size_t to) { rejected_.insert(way_of(from, to)); }
  void thaw(std::size_t which) { network_.thaw(which); }
  /// No message passes between the nodes with numbers below `first` and the others.
  void separate(std::size_t first);

  std::size_t size() const noexcept { return hosts_.size(); }
  const member& self(std::size_t which) const { return hosts_[which].self; }
  const membership::member_table& table(std::size_t which) const { return hosts_[which].table; }
  /// Whether `who` is up for `at`: as a peer, or as a member that other nodes say is up.
  bool is_up(std::size_t at, std::size_t who) const;
  bool is_peer(std::size_t at, std::size_t who) const;
  bond between(std::size_t at, std::size_t who) const { return hosts_[at].table.between(hosts_[who].self.id); }

  std::size_t separations() const noexcept { return separations_; }
  std::size_t partings() const noexcept { return partings_; }
  /// How often a name was refused because another node has it, and how many greetings wait for an answer of the node.
  std::size_t names_refused() const noexcept { return names_refused_; }
  std::size_t callers(std::size_t which) const { return hosts_[which].callers.size(); }
  std::uint64_t messages() const noexcept { return sent_; }
  std::uint64_t sent_by(std::size_t which) const { return hosts_[which].sent; }
  std::uint64_t news_sent_by(std::size_t which) const { return hosts_[which].news_sent; }
  /// The members that the messages with news named which the node has sent, each as often as it was named.
  std::uint64_t members_told_by(std::size_t which) const { return hosts_[which].members_told; }
  /// How often a member that was `known` was lost, and how often it was gone.
  std::size_t lost() const noexcept { return lost_; }
  std::size_t gone() const noexcept { return gone_; }
  void forget_counts();

 private:
  /// A message to a process. `number`: of the greeting or the question to which it belongs; 0: of none.
  struct message {
    std::size_t from;
    std::size_t to;
    node_id from_id;
    node_id to_id;
    std::uint64_t number;
    std::variant<hello, welcome, caf::error, heartbeat, heartbeat_seen, farewell, gossip> what;
  };
  struct caller {
    std::size_t from;
    node_id id;
    std::uint64_t number;
  };
  struct host {
    member self;
    membership::member_table table;
    std::unique_ptr<membership::greetings> greetings;
    bool has_joined = false;  // a node dials another one until that has answered
    std::size_t joins_by = 0;
    std::uint64_t join = 0;                      // while the node joins
    std::map<std::uint64_t, std::size_t> asked;  // where greetings wait for an answer
    std::map<std::uint64_t, caller> callers;
    std::map<std::uint64_t, node_id> searches;
    std::map<node_id, std::string> last;  // the last news of each peer
    std::uint64_t sent = 0;
    std::uint64_t news_sent = 0;
    std::uint64_t members_told = 0;
    std::map<node_id, std::string> last_heard;  // the last news of each member that is no peer
  };
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  static std::uint64_t way_of(std::size_t a, std::size_t b) { return (std::uint64_t{a} << 32) | b; }
  std::size_t host_of(const member& who) const { return std::stoul(who.host); }
  member new_self(std::size_t which, const std::string& name = {});
  void begin(std::size_t which);
  void go_wrong();
  template <class What>
  void send(std::size_t from, std::size_t to, What what, std::uint64_t number = 0);
  bool is_connected(std::size_t at, const member& to) const;
  void unanswered(std::size_t at, std::uint64_t wait);
  void lost(std::size_t at, std::size_t other);
  void act(std::size_t at, membership::member_steps steps);
  void check_heard(std::size_t at, const membership::peer_change& news);
  void check(std::size_t at, const membership::peer_change& news);
  void beat(std::size_t which);

  void take(std::size_t at, membership::greeting_event event);
  void take_later(std::size_t at, std::int64_t delay_ns, membership::greeting_event event);
  void carry_out(std::size_t at, membership::member_steps& what) { act(at, std::move(what)); }
  void carry_out(std::size_t at, const membership::dial_address& what);
  void carry_out(std::size_t at, membership::say_hello& what);
  void carry_out(std::size_t at, const membership::ask_rival& what);
  void carry_out(std::size_t at, const membership::ask_holder& what);
  void carry_out(std::size_t at, const membership::begin_pause& what);
  void carry_out(std::size_t at, membership::accept_hello& what);
  void carry_out(std::size_t at, const membership::refuse_hello& what);
  void carry_out(std::size_t at, const membership::say_farewell& what);
  void carry_out(std::size_t at, membership::introduce& what);
  void carry_out(std::size_t, const membership::join_changed&) {}
  void carry_out(std::size_t at, const membership::join_ended& what);
  void tell(std::size_t at, node_id to, std::vector<member_news> news, bool introduces);
  template <class Answer>
  void answer(std::size_t at, std::uint64_t caller, Answer what);

  void receive(const message& got);
  void receive(const message& got, const hello& what);
  void receive(const message& got, const welcome& what);
  void receive(const message& got, const caf::error& what);
  void receive(const message& got, const heartbeat& what);
  void receive(const message& got, const heartbeat_seen& what);
  void receive(const message& got, const farewell& what);
  void receive(const message& got, const gossip& what);

  settings how_;
  membership::greeting_settings greeting_;
  std::mt19937_64 random_;
  simulation::event_queue clock_{1};
  simulation::simulated_network network_;
  std::deque<host> hosts_;  // a deque: greetings refer to the tables
  std::set<std::uint64_t> rejected_;
  std::uint64_t last_id_ = 0;
  bool lossy_ = false;
  std::size_t separations_ = 0;
  std::size_t partings_ = 0;
  std::size_t names_refused_ = 0;
  std::size_t lost_ = 0;
  std::size_t gone_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace troupe::test
