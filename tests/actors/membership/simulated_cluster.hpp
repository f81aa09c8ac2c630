// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/actors/membership/member_table.hpp>

namespace troupe::test {

/// A cluster of tables of members, and the network between them, on a clock of its own. Each node runs the code that decides in
/// a real node (member_table and roster). Messages take a drawn time and may be lost, links are cut and mended, connections
/// break, nodes freeze, end and restart. All is drawn from one seed.
///   SC-1  the news of a node about a peer alternate as ME-1 says; otherwise the simulation throws std::logic_error.
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

    /// A cluster in which all nodes know each other and share no work, with the limits of a real node.
    static settings meshed(std::size_t count, std::uint64_t seed = 1);
  };

  explicit simulated_cluster(settings how);

  /// Lets time pass. With `faults` things go wrong.
  void pass(std::int64_t ns, bool faults = false);
  std::int64_t now_ns() const noexcept { return now_; }
  std::int64_t interval_ns() const noexcept { return how_.limits.heartbeat.count(); }

  /// Mends all links, wakes all nodes, and starts those that have ended.
  void heal();
  /// From now on the node answers nothing. Its connections stand.
  void freeze(std::size_t which) { hosts_[which].is_frozen = true; }
  /// Ends the process of the node. Its peers see their connections end.
  void kill(std::size_t which);
  /// Stops the node, which says farewell to its peers.
  void leave(std::size_t which);
  /// Starts a new node at the address of a node that has ended.
  void start(std::size_t which);
  /// Starts one more node, which joins by the node `at`. Returns its number.
  std::size_t join(std::size_t at);
  /// No message passes between the two nodes. The second one may join later.
  void cut(std::size_t a, std::size_t b) { cut_.insert({way_of(a, b), way_of(b, a)}); }
  /// The host of `to` refuses connections from the host of `from`, as a firewall does.
  void reject(std::size_t from, std::size_t to) { rejected_.insert(way_of(from, to)); }
  void thaw(std::size_t which) { hosts_[which].is_frozen = false; }
  /// No message passes between the nodes with numbers below `first` and the others.
  void part(std::size_t first);

  std::size_t size() const noexcept { return hosts_.size(); }
  const member& self(std::size_t which) const { return hosts_[which].self; }
  const membership::member_table& table(std::size_t which) const { return hosts_[which].table; }
  /// Whether `who` is up for `at`: as a peer, or as a member that other nodes say is up.
  bool is_up(std::size_t at, std::size_t who) const;
  bool is_peer(std::size_t at, std::size_t who) const;
  bond between(std::size_t at, std::size_t who) const { return hosts_[at].table.between(hosts_[who].self.id); }

  std::size_t separations() const noexcept { return separations_; }
  std::size_t partings() const noexcept { return partings_; }
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
  struct host {
    member self;
    membership::member_table table;
    bool is_frozen = false;
    bool is_dead = false;
    bool has_joined = false;  // a node dials another one until that has answered
    std::size_t joins_by = 0;
    std::uint64_t lives = 0;                     // counts restarts: timers of an earlier life do nothing
    std::map<node_id, std::int64_t> dials;       // the deadlines
    std::map<node_id, std::uint32_t> addresses;  // of the nodes that are dialled
    std::map<node_id, std::string> last;         // the last news of each peer
    std::vector<std::size_t> waiting;            // messages that came while the node was frozen
    std::uint64_t sent = 0;
    std::uint64_t news_sent = 0;
    std::uint64_t members_told = 0;
    std::map<node_id, std::string> last_heard;  // the last news of each member that is no peer
  };
  struct message {
    enum class kind { hello, welcome, beat, seen, refused, farewell, lost, news, nobody } what;
    std::size_t from;
    std::size_t to;
    node_id from_id;
    node_id to_id;
    bond between = {};
    std::uint64_t connection = 0;
    std::uint64_t digest = 0;
    std::uint32_t incarnation = 0;
    std::shared_ptr<const std::vector<member_news>> news = nullptr;
    bool introduces = false;
  };
  enum class timer { beat, pass_on, dial, message };
  struct event {
    std::int64_t due_ns;
    std::uint64_t number;  // events of one time happen in the order in which they were planned
    timer what;
    std::size_t host;
    std::uint64_t life;
    std::shared_ptr<const message> carried;

    bool operator>(const event& other) const { return std::tie(due_ns, number) > std::tie(other.due_ns, other.number); }
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  static std::uint64_t pair_of(std::size_t a, std::size_t b) { return (std::uint64_t{std::min(a, b)} << 32) | std::max(a, b); }
  static std::uint64_t way_of(std::size_t a, std::size_t b) { return (std::uint64_t{a} << 32) | b; }
  bool is_cut(std::size_t from, std::size_t to) const;
  std::uint64_t connection(std::size_t a, std::size_t b) const;
  std::size_t host_of(const member& who) const { return std::stoul(who.host); }
  member new_self(std::size_t which);
  void plan(std::int64_t in_ns, timer what, std::size_t host, std::shared_ptr<const message> carried = nullptr);
  void begin(std::size_t which);
  void go_wrong();
  void break_connection(std::size_t a, std::size_t b);
  void send(message what);
  message from(std::size_t sender, message::kind what, std::size_t to) const;
  void dial(std::size_t from, const member& who);
  void greet(std::size_t from, std::size_t to, node_id expected);
  void end_dial(std::size_t at, node_id whom, membership::member_table::dial_end how);
  void end_dials(std::size_t at, const member& who);
  void act(std::size_t at, membership::member_steps steps);
  void check_heard(std::size_t at, const membership::peer_change& news);
  void check(std::size_t at, const membership::peer_change& news);
  void beat(std::size_t which);
  void meet(std::size_t at, const message& got, membership::member_table::way how);
  void learn(std::size_t at, const message& got);
  void receive(const message& got);

  settings how_;
  std::mt19937_64 random_;
  std::int64_t now_ = 1;
  std::int64_t fault_ns_ = 0;
  std::vector<host> hosts_;
  std::set<std::uint64_t> cut_;
  std::set<std::uint64_t> rejected_;
  std::size_t parted_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> connections_;
  std::uint64_t last_connection_ = 0;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_event_ = 0;
  bool lossy_ = false;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::size_t separations_ = 0;
  std::size_t partings_ = 0;
  std::size_t lost_ = 0;
  std::size_t gone_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace troupe::test
