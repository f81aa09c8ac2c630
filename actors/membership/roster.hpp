// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/actors/membership/heard_members.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::membership {

/// Stores what this node knows of all members of the cluster by news that neighbours pass on. A cluster may have thousands of
/// members, so a node exchanges heartbeats and news only with a few neighbours. The design follows SWIM (Das, Gupta and
/// Motivala, 2002): a member that does not answer is suspected, and may contradict. The neighbours of a node are drawn from
/// rings, as in Rapid (Suresh and others, 2018). This class only decides: it sends no message and reads no clock.
///
///   state        meaning                                                          next state
///   up           no node says otherwise                                           accuse(), or news: suspected
///                                                                                  end(), or news: gone or left
///   suspected    a node gets no answer from the member. Other nodes still take    news of a higher incarnation: up
///                the member for up, for `patience`; then it is unreachable        beat() after `forget_after`, end(), or
///                                                                                  news: gone or left
///   gone, left   the member's process has ended, or nobody hears from it           news of a higher incarnation: up
///
///   RT-1  of two pieces of news about a member, the one with the higher incarnation counts; of one incarnation, the later
///         state in the list of member_state.
///   RT-2  a node that hears that it is suspected or gone raises its incarnation and says that it is up.
///   RT-3  each piece of news goes once to each neighbour, except the one that it came from. So the news of one event cost a
///         node at most as many messages as it has neighbours, however large the cluster is.
///   RT-4  if there are at most `most_in_mesh` other members, all are neighbours. Otherwise a hash of the ids orders the
///         members in `rings` circles, and the two members next to this node in each circle are its neighbours. Two nodes that
///         know the same members agree on who is a neighbour of whom.
///   RT-5  of the members that are gone, the roster keeps the newest `most_gone`, for an hour. If hear_all() hears that an
///         unknown member is gone, the member stays unknown. Otherwise nodes that tell each other all news would never forget
///         it.
///   RT-6  a roster keeps at most `most_members` members and `most_clashes` members whose name is taken. News with an
///         impossible name, host or incarnation change nothing.
///   RT-7  a member has one name, because no node changes its name. News of other nodes that give a known member another name
///         change nothing. The name that the member itself says counts (met()), if the name is free.
class roster : public heard_members {
 public:
  static constexpr std::size_t most_gone = 1024;
  static constexpr std::size_t most_clashes = 1024;
  /// The highest incarnation that counts. Without false news no node reaches it, because a node raises its incarnation once in
  /// some seconds at most.
  static constexpr std::uint32_t most_incarnation = std::uint32_t{1} << 31;

  struct limits {
    std::chrono::nanoseconds patience{1'500'000'000};  // from the first suspicion until the member is unreachable
    std::chrono::nanoseconds forget_after{30'000'000'000};
    std::chrono::nanoseconds accuse_again{30'000'000'000};  // a node does not accuse a member again within this time
    std::size_t most_in_mesh = 8;
    std::uint64_t rings = 3;
    std::size_t most_members = 65'536;
  };

  /// A member has become known or up again, or is not up any more. `clash`: the member is left out, because it has the name of
  /// another member or because the roster is full. `contested`: another node has the name of the member, which may have ended.
  struct change {
    enum class kind { arrived, unreachable, gone, clash, contested };

    kind what;
    member who;
    std::string reason;
  };

  roster(member self, limits how) : heard_members(std::move(self)), limits_(how) {}
  /// The roster that another member has, if it has heard the same as this node.
  roster seen_by(const member& other) const;

  void set_port(std::uint16_t port) noexcept { own_.port = port; }

  /// Takes in news. `from`: the neighbour that they came from.
  void hear(node_id from, const std::vector<member_news>& news, std::int64_t now_ns);
  /// Takes in all news of another node, in a greeting.
  void hear_all(node_id from, std::vector<member_news> news, std::int64_t now_ns);
  /// Says that this node has spoken with a member. If other nodes suspect the member or take it for gone, returns this news,
  /// which the member has to contradict.
  std::vector<member_news> met(const member& who, std::uint32_t incarnation, std::int64_t now_ns);
  /// Says that the member has just spoken with this node. The next accuse() counts, even within `accuse_again`.
  void spoke(node_id who) { accused_.erase(who); }
  /// Says that this node gets no answer from the member. Other nodes hear this at most once in `accuse_again`.
  void accuse(node_id who, std::int64_t now_ns);
  /// Says that the member has ended (`gone`), or has said farewell (`left`).
  void end(node_id who, member_state how, const std::string& reason, std::int64_t now_ns);
  /// To be called once in each interval of heartbeats.
  void beat(std::int64_t now_ns);

  /// Returns what has changed since the last call.
  std::vector<change> take_changes() { return std::exchange(changes_, {}); }

  /// News that have to be passed on, each with the neighbour that it came from (empty: from this node itself).
  struct item {
    member_news news;
    node_id from;
    std::uint64_t number;
  };
  /// The number of the newest piece of news.
  std::uint64_t last_news() const noexcept { return last_news_; }
  bool has_news() const noexcept { return !fresh_.empty(); }
  std::vector<item> take_news();

  /// The ids of the neighbours, ascending.
  const std::vector<node_id>& neighbours() const;
  bool is_neighbour(node_id who) const;

  /// Whether the member is left out, because its name belongs to another member that is not this node.
  bool is_left_out(node_id who) const;

 private:
  /// News about a member whose name belongs to another member. The other member may have ended, so the news wait until that is
  /// known.
  struct clash {
    member_news news;
    node_id from;
    std::int64_t since_ns = 0;
    bool is_told = false;
  };

  void take(node_id from, const member_news& news, const std::string& reason, std::int64_t now_ns);
  void change_to(entry& which, const member_news& news, node_id from, const std::string& reason, std::int64_t now_ns);
  bool makes_way(node_id from, const member_news& for_news, std::int64_t now_ns);
  void settle_clashes(std::int64_t now_ns);
  void erase(entry& which);
  void tell_full(const member& who);
  void contradict(const member_news& news);
  void drop_oldest();

  limits limits_;
  std::unordered_map<node_id, std::int64_t> since_;    // when the member became suspected or gone
  std::unordered_map<node_id, std::int64_t> accused_;  // when this node accused the member
  struct source {
    node_id from;
    std::uint64_t number;
  };
  std::unordered_map<node_id, source> fresh_;  // members whose news have to be passed on, and the source of the news
  std::uint64_t last_news_ = 0;
  bool is_full_told_ = false;
  std::unordered_map<node_id, clash> clashes_;
  std::vector<change> changes_;
  mutable std::vector<node_id> neighbours_;
  mutable bool knows_neighbours_ = true;
};

}  // namespace troupe::membership
