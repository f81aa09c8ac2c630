// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/membership/roster_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/messages/messages.hpp>

namespace troupe::membership {

/// Whether news with `incarnation` and `state` replace news with the old incarnation and state (RT-1 of roster).
inline bool is_newer(std::uint32_t incarnation, member_state state, std::uint32_t old_incarnation,
                     member_state old_state) noexcept {
  return std::tie(incarnation, state) > std::tie(old_incarnation, old_state);
}

/// Stores what this node has heard of all members of the cluster, and what it says of itself. Members are found by id and by
/// name. This class answers questions; the derived class `roster` changes the content.
class heard_members {
 public:
  const member& self() const noexcept { return own_; }
  std::uint32_t incarnation() const noexcept { return incarnation_; }

  /// The member, if it is not gone and has not left; null otherwise.
  const member* find(node_id who) const;
  const member* find(const std::string& name) const;
  /// Whether the member is known, not gone, and was not suspected for longer than `patience`.
  bool is_up(node_id who) const;
  /// Whether some node suspects the member, or takes it for gone.
  bool doubts(node_id who) const;
  /// The members that are up, without this node.
  std::vector<member> members() const;

  /// What the owner of the roster has told its subscribers about a member. This class only stores it.
  enum class told : std::uint8_t { nothing, known, lost };
  /// Null if the member is unknown.
  told* told_of(node_id who);

  /// The news about one member; none if it is unknown.
  std::vector<member_news> about(node_id who) const;
  /// All news that this node has: of other members, and of itself.
  std::vector<member_news> all() const;
  /// The news of all() that another node lacks. `theirs`: all news that the other node has told.
  std::vector<member_news> beyond(const std::vector<member_news>& theirs) const;
  /// A number that is equal on two nodes that have heard the same. News about `one` and `other`, the two nodes that compare, do
  /// not count, because these nodes know each other better.
  std::uint64_t digest(node_id one, node_id other) const;

 protected:
  struct entry {
    node_id id;
    std::shared_ptr<const member> who;
    std::uint32_t incarnation = 0;
    member_state state = member_state::up;
    bool is_unreachable = false;  // suspected for longer than `patience`
    told last_told = told::nothing;

    bool is_listed() const noexcept { return state < member_state::gone; }
    bool counts() const noexcept { return is_listed() && !is_unreachable; }
  };

  explicit heard_members(member self) : own_(std::move(self)) {}

  entry* find_entry(node_id who);
  const entry* find_entry(node_id who) const;
  void rename(entry& which, const member& who);
  void list_name(const entry& which, bool is_listed);

  member own_;
  std::uint32_t incarnation_ = 0;
  std::vector<entry> entries_;                            // by id, ascending; in a vector, because a large cluster has many
  std::vector<std::pair<std::uint64_t, node_id>> names_;  // of the members that are listed: the hash of the name; ascending
};

}  // namespace troupe::membership
