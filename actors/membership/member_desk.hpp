// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/membership_test.cpp
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/actor.hpp>
#include <caf/result.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/contracts/membership.hpp>
#include <troupe/actors/membership/greetings.hpp>
#include <troupe/actors/membership/member_table.hpp>
#include <troupe/actors/membership/membership_options.hpp>
#include <troupe/actors/support/desk_actor.hpp>

namespace troupe::membership {

inline constexpr std::int64_t longest_ns = 1'000'000'000'000'000'000;  // 31 years: no sum of times overflows

/// Carries out what the table of members decides: heartbeats, news about members, searches for members.
class member_desk {
 public:
  /// `greet`: is called for each greeting and each dial that the table wants.
  member_desk(support::desk_actor self, const membership_options& options, std::function<void(greeting_event)> greet);

  member_table& table() noexcept { return table_; }
  bool is_leaving() const noexcept { return is_leaving_; }
  std::int64_t now() const { return options_.clock(); }

  /// Carries out the steps that the table has decided.
  void act(const member_steps& steps);
  /// Prepares news for the node at the other end of the route. In them, this node's host becomes the host by which the other
  /// node reaches this node. Members that the other node can't reach are left out, and the log names them.
  std::vector<member_news> news_for(std::vector<member_news> all, const std::optional<route>& to) const;
  /// Sends the news to a peer. `introduces`: whether the two nodes have just met; the peer then greets its new neighbours at
  /// once.
  void pass_on(node_id to, std::vector<member_news> news, bool introduces) const;
  /// Lets the actor get one down message when the gateway ends or its connection is lost, however often watch() is called.
  void watch(const caf::strong_actor_ptr& gateway) const;

  /// Runs the function in the actor after a time. Returns the number of the timer.
  std::uint64_t after(std::chrono::nanoseconds delay, std::function<void()> run);
  void timer_ended(std::uint64_t number);

  /// To be called once in each interval of heartbeats.
  void beat();
  caf::result<contracts::peer_up> find(const std::string& name, node_id id, std::int64_t left_ns);
  caf::result<heartbeat_seen> answer(const heartbeat& from);
  caf::result<std::int64_t> clock_of(node_id peer) const;
  void subscribe(const caf::actor& subscriber);
  void lost(const caf::down_msg& down);
  /// Ends the searches, and says farewell to all peers.
  caf::result<caf::unit_t> leave(const std::string& reason);

 private:
  struct search {
    std::string name;
    node_id id;  // used if `name` is empty
    std::int64_t until_ns = 0;
    std::uint64_t timer = 0;
    caf::typed_response_promise<contracts::peer_up> promise;
  };

  template <class News>
  void publish(const News& news) const;
  /// Ends the searches for which `is_over` returns true, with this answer.
  template <class Ends, class Answer>
  void end_searches(const Ends& is_over, const Answer& answer);
  void fail_searches(const member& who, const std::string& reason);
  void look_for(const search& wanted);
  void tell(const peer_change& news);
  void tell_heard(const peer_change& news);
  void tell(const obstacle& news) const;
  void send_heartbeat(node_id to);

  support::desk_actor self_;
  const membership_options& options_;
  const std::function<void(greeting_event)> greet_;
  member_table table_;
  bool is_leaving_ = false;
  std::list<search> searches_;
  std::vector<caf::actor> subscribers_;
  std::unordered_map<std::uint64_t, std::function<void()>> timers_;
  std::uint64_t last_timer_ = 0;
};

}  // namespace troupe::membership
