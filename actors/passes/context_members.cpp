// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/context_members.hpp>

namespace troupe::passes {

namespace {

/// The position in the tree of calls of a node whose parent is the root and that has no children. Most records of other nodes'
/// contexts share this object: adopt() copies a shared position before it adds a child.
const std::shared_ptr<protocol::call_tree_position>& below_the_root() {
  static const auto position = std::make_shared<protocol::call_tree_position>();
  return position;
}

}  // namespace

void context_members::called(node_id who) {
  checked_lock lock(mutex_);
  if (who != here_) nodes_[who] = {.is_peer = true, .takes_part = true};
}

void context_members::joined(const std::vector<node_id>& nodes) {
  checked_lock lock(mutex_);
  for (const node_id each : nodes) nodes_[each] = {.is_peer = each != here_, .takes_part = true};
}

void context_members::announced(node_id who) {
  checked_lock lock(mutex_);
  if (who != here_) nodes_[who].is_peer = true;
}

void context_members::left(node_id who) {
  checked_lock lock(mutex_);
  const auto found = nodes_.find(who);
  if (found == nodes_.end()) return;
  found->second.is_peer = false;
  if (!found->second.takes_part) nodes_.erase(found);
}

std::vector<node_id> context_members::peers() const {
  checked_lock lock(mutex_);
  std::vector<node_id> result;
  for (const auto& [who, known] : nodes_)
    if (known.is_peer) result.push_back(who);
  return result;
}

bool context_members::has_peer(node_id who) const {
  checked_lock lock(mutex_);
  const auto found = nodes_.find(who);
  return found != nodes_.end() && found->second.is_peer;
}

bool context_members::takes_part(node_id who) const {
  checked_lock lock(mutex_);
  const auto found = nodes_.find(who);
  return found != nodes_.end() && found->second.takes_part;
}

void context_members::called_by(node_id who) {
  checked_lock lock(mutex_);
  if (who == here_) return;
  nodes_[who].takes_part = true;
  if (position_ || opener_ == here_) return;
  if (who == opener_)  // the root need not be noted as the parent: it gets the reports in any case
    position_ = below_the_root();
  else
    position_ = std::make_shared<protocol::call_tree_position>(protocol::call_tree_position{who, {}});
}

bool context_members::joined_by(node_id caller) const {
  checked_lock lock(mutex_);
  return position_ && position_->parent == caller && caller != node_id{};
}

void context_members::adopt(node_id child) {
  checked_lock lock(mutex_);
  if (!position_ || position_->children.contains(child)) return;
  if (position_.use_count() > 1)  // a running pass or another record uses this position too
    position_ = std::make_shared<protocol::call_tree_position>(*position_);
  position_->children.insert(child);
}

protocol::call_tree_position_ptr context_members::position() const {
  checked_lock lock(mutex_);
  return position_;
}

}  // namespace troupe::passes
