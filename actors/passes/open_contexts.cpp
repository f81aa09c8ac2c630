// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/open_contexts.hpp>

#include <memory>

#include <caf/send.hpp>

#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/passes/context_actor.hpp>
#include <troupe/actors/passes/pass_start.hpp>
#include <troupe/actors/services/garbage.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/support/activity.hpp>

namespace troupe::passes {

open_context open_contexts::open() {
  auto made = make({here_.self.id(), opened_.fetch_add(1) + 1});
  if (know(made)) return made;
  made.record->release();
  throw error(errc::stopping, "node '" + here_.self.name() + "' has stopped");
}

open_context open_contexts::make(const context_id& id) const {
  auto record = std::make_shared<context_record>(id, here_.self.id(), here_.counts);
  auto actor = spawn_context(&here_, record);
  return {std::move(record), std::move(actor)};
}

contracts::graph_task_actor open_contexts::join(const contracts::context_record_ptr& record, pass_number number,
                                                bool keep_graph, bool create_graph) const {
  return join_pass(here_, record, number, keep_graph, create_graph);
}

bool open_contexts::know(const open_context& context) {
  checked_lock lock(mutex_);
  const auto id = context.record->id();
  if (stopped_ || is_full(id.node)) return false;
  if (!open_.emplace(id, context).second) return true;
  auto& of_opener = open_of_[id.node];
  ++of_opener.contexts;
  // The limit CR-6 counts only with a policy. Without a policy nodes trust each other, and a program may run thousands of
  // passes whose gradients nobody gathers.
  if (id.node != here_.self.id() && here_.network.peers.policy != nullptr) context.record->count_in(of_opener.tasks);
  return true;
}

bool open_contexts::is_full(node_id opener) const {
  const auto found = open_of_.find(opener);
  return opener != here_.self.id() && found != open_of_.end() && found->second.contexts >= most_of_one;
}

void open_contexts::erase(std::unordered_map<context_id, open_context>::iterator which) {
  const auto opener = open_of_.find(which->first.node);
  if (opener != open_of_.end() && --opener->second.contexts == 0) open_of_.erase(opener);
  open_.erase(which);
}

void open_contexts::forget(const context_id& id) {
  checked_lock lock(mutex_);
  if (const auto found = open_.find(id); found != open_.end()) erase(found);
}

open_context open_contexts::find(const context_id& id) const {
  checked_lock lock(mutex_);
  const auto found = open_.find(id);
  return found == open_.end() ? open_context{} : found->second;
}

std::vector<open_context> open_contexts::all() const {
  checked_lock lock(mutex_);
  std::vector<open_context> result;
  for (const auto& [id, each] : open_) result.push_back(each);
  return result;
}

error open_contexts::unknown(const context_id& id) const {
  checked_lock lock(mutex_);
  if (is_full(id.node))
    return error(errc::refused, "node '" + here_.self.name() + "' has " + std::to_string(most_of_one) +
                                  " open contexts of node '" + here_.directory.name(id.node) +
                                  "', and takes no more of it; release some");
  return error(errc::unknown_context, "node '" + here_.self.name() + "' does not know " + to_string(id) +
                                        ": it was released, or its node is down or was never met");
}

void open_contexts::close(const context_id& id) {
  {
    checked_lock lock(mutex_);
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    if (!stopped_) closed_.emplace_back(id, std::move(found->second.actor));  // after stop() the node ends the context actors
    erase(found);
  }
  here_.garbage.tidy_soon();
}

void open_contexts::release_closed() {
  std::vector<std::pair<context_id, contracts::context_actor>> all;
  {
    checked_lock lock(mutex_);
    all.swap(closed_);
  }
  for (auto& [id, actor] : all) caf::anon_send(here_.actors.gateway, support::close_atom::value, id, std::move(actor));
}

void open_contexts::add(contracts::outgoing_joint_ptr joint) {
  if (auto mine = find(joint->context).record)
    mine->add(std::move(joint->send), joint->to, std::move(joint->recordings));
  else
    caf::anon_send(here_.actors.gateway, std::move(joint));
}

std::vector<contracts::context_actor> open_contexts::stop() {
  checked_lock lock(mutex_);
  stopped_ = true;
  std::vector<contracts::context_actor> result;
  for (auto& [id, each] : std::exchange(open_, {})) result.push_back(std::move(each.actor));
  for (auto& [id, each] : std::exchange(closed_, {})) result.push_back(std::move(each));
  return result;
}

}  // namespace troupe::passes
