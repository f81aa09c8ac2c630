// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/context_record.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <troupe/messages/errors.hpp>

namespace troupe::passes {

namespace {

/// The place of a child of the root that has no child itself. Most records of other nodes' contexts share this one: adopt() changes no
/// shared place.
const std::shared_ptr<protocol::call_tree_place>& below_the_root() {
  static const auto place = std::make_shared<protocol::call_tree_place>();
  return place;
}

}  // namespace

void context_record::count_in(std::shared_ptr<part_count> parts) {
  std::lock_guard lock(mutex_);
  parts_ = std::move(parts);
}

bool context_record::add(engine::send_source send, node_id to, std::vector<engine::recording> recordings) {
  std::lock_guard lock(mutex_);
  if (released_) return false;
  if (send.function) sends_.push_back(std::move(send));
  std::move(recordings.begin(), recordings.end(), std::back_inserter(recordings_));
  if (to == node_id{} || to == here_) return true;
  nodes_[to] = {.is_peer = true, .has_part = true};
  return true;
}

void context_record::end_recording(const engine::recording& which) {
  const auto now = engine::recording_from_now({}).from;
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(recordings_.rbegin(), recordings_.rend(), [&](const engine::recording& each) {
    return each.thread == which.thread && each.from == which.from && each.place == which.place;
  });
  if (found != recordings_.rend()) found->to = now;
}

void context_record::brief(call_request& request) const {
  std::lock_guard lock(mutex_);
  request.completed = completed_;
  request.failed.assign(failed_.begin(), failed_.end());
}

void context_record::joined(const std::vector<node_id>& nodes) {
  std::lock_guard lock(mutex_);
  for (const node_id each : nodes) nodes_[each] = {.is_peer = each != here_, .has_part = true};
}

void context_record::announced(node_id who) {
  std::lock_guard lock(mutex_);
  if (who != here_) nodes_[who].is_peer = true;
}

void context_record::left(node_id who) {
  std::lock_guard lock(mutex_);
  const auto found = nodes_.find(who);
  if (found == nodes_.end()) return;
  found->second.is_peer = false;
  if (!found->second.has_part) nodes_.erase(found);
}

std::vector<node_id> context_record::peers() const {
  std::lock_guard lock(mutex_);
  std::vector<node_id> result;
  for (const auto& [who, known] : nodes_)
    if (known.is_peer) result.push_back(who);
  return result;
}

bool context_record::has_peer(node_id who) const {
  std::lock_guard lock(mutex_);
  const auto found = nodes_.find(who);
  return found != nodes_.end() && found->second.is_peer;
}

void context_record::called_by(node_id who) {
  std::lock_guard lock(mutex_);
  if (who == here_) return;
  nodes_[who].has_part = true;
  if (place_ || id_.node == here_) return;
  if (who == id_.node)  // the root gets the reports of its children in any case
    place_ = below_the_root();
  else
    place_ = std::make_shared<protocol::call_tree_place>(protocol::call_tree_place{who, {}});
}

bool context_record::joined_by(node_id caller) const {
  std::lock_guard lock(mutex_);
  return place_ && place_->parent == caller && caller != node_id{};
}

void context_record::adopt(node_id child) {
  std::lock_guard lock(mutex_);
  if (!place_ || place_->children.contains(child)) return;
  if (place_.use_count() > 1)  // a running pass or another record uses this place too
    place_ = std::make_shared<protocol::call_tree_place>(*place_);
  place_->children.insert(child);
}

bool context_record::has_part(node_id who) const {
  std::lock_guard lock(mutex_);
  const auto found = nodes_.find(who);
  return found != nodes_.end() && found->second.has_part;
}

std::vector<contracts::graph_task_actor> context_record::learn(pass_number completed, const std::vector<pass_number>& failed) {
  std::lock_guard lock(mutex_);
  std::vector<contracts::graph_task_actor> lost;
  if (id_.node == here_) return lost;
  const auto news = std::count_if(failed.begin(), failed.end(), [this](pass_number each) { return !failed_.contains(each); });
  if (failed_.size() + static_cast<std::size_t>(news) > most_failed)
    throw error(errc::refused, "the context " + to_string(id_) + " has more than " + std::to_string(most_failed) +
                                 " failed passes; open another context");
  for (const pass_number number : failed) {
    failed_.insert(number);
    if (auto task = take_task(number)) lost.push_back(std::move(task));
  }
  completed_ = std::max(completed_, completed);
  return lost;
}

bool context_record::is_possible(pass_number number) const {
  std::lock_guard lock(mutex_);
  const auto known = std::max(current_, completed_).value;
  return number.value <= known || number.value - known <= longest_leap;
}

bool context_record::lacks(pass_number completed, const std::vector<pass_number>& failed) const {
  std::lock_guard lock(mutex_);
  if (!tasks_.empty()) return true;
  return has_gradients_ && (completed > completed_ || std::any_of(failed.begin(), failed.end(), [this](pass_number each) {
                              return !failed_.contains(each);
                            }));
}

void context_record::profile() {
  std::lock_guard lock(mutex_);
  profiled_ = true;
}

bool context_record::has_gradients() const {
  std::lock_guard lock(mutex_);
  return has_gradients_;
}

std::optional<context_record::start> context_record::begin(bool at_once) {
  std::lock_guard lock(mutex_);
  if (running_ != pass_number{} || released_ || (at_once && (gathering_ || !tasks_.empty()))) return std::nullopt;
  running_ = current_ = {current_.value + 1};
  ++counts_.passes_running;
  has_gradients_ = true;
  start result{current_, sends_, {}, recordings_, {}};
  for (const auto& [who, known] : nodes_)
    if (known.is_peer) result.peers.insert(result.peers.end(), who);
  return result;
}

std::optional<context_record::start> context_record::follow(pass_number number) {
  std::lock_guard lock(mutex_);
  if (is_over(number) || is_crowded()) return std::nullopt;
  current_ = number;
  has_gradients_ = true;
  return start{current_, sends_, {}, {}, place_};
}

bool context_record::is_over(pass_number number) const { return released_ || number <= current_ || failed_.contains(number); }

bool context_record::lacks_room_for(pass_number number) const {
  std::lock_guard lock(mutex_);
  return is_crowded() && !is_over(number);
}

bool context_record::set_task(pass_number number, contracts::graph_task_actor task) {
  std::lock_guard lock(mutex_);
  if (!released_ && tasks_.emplace(number, std::move(task)).second && parts_) ++*parts_;
  return !released_;
}

contracts::graph_task_actor context_record::task_of(pass_number number) const {
  std::lock_guard lock(mutex_);
  const auto found = tasks_.find(number);
  return found == tasks_.end() ? contracts::graph_task_actor{} : found->second;
}

std::vector<contracts::graph_task_actor> context_record::tasks() const {
  std::lock_guard lock(mutex_);
  std::vector<contracts::graph_task_actor> result;
  for (const auto& [number, task] : tasks_) result.push_back(task);
  return result;
}

contracts::graph_task_actor context_record::take_task(pass_number number) {
  const auto found = tasks_.find(number);
  if (found == tasks_.end()) return {};
  auto task = std::move(found->second);
  tasks_.erase(found);
  if (parts_) --*parts_;
  return task;
}

void context_record::end(pass_number number, bool succeeded) {
  contracts::graph_task_actor lost;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  if (running_ == number) {
    running_ = {};
    counts_.pass_ended(succeeded);
  }
  if (succeeded) {
    completed_ = std::max(completed_, number);
    return;
  }
  failed_.insert(number);
  lost = take_task(number);
}

contracts::graph_task_actor context_record::skip(pass_number number) {
  std::lock_guard lock(mutex_);
  if (id_.node == here_ && number > current_) return {};
  current_ = std::max(current_, number);
  if (failed_.size() < most_failed) failed_.insert(number);  // the calls of the opener are refused later
  return take_task(number);
}

contracts::graph_task_actor context_record::next_to_gather() {
  std::lock_guard lock(mutex_);
  const auto oldest = tasks_.begin();
  gathering_ = oldest != tasks_.end() && oldest->first <= completed_;
  return gathering_ ? take_task(oldest->first) : contracts::graph_task_actor{};
}

bool context_record::profiled() const {
  std::lock_guard lock(mutex_);
  return profiled_;
}

pass_number context_record::completed() const {
  std::lock_guard lock(mutex_);
  return completed_;
}

std::vector<engine::recording> context_record::recordings() const {
  std::lock_guard lock(mutex_);
  return recordings_;
}

bool context_record::running() const {
  std::lock_guard lock(mutex_);
  return running_ != pass_number{};
}

context_record::remains context_record::release() {
  std::lock_guard lock(mutex_);
  if (!std::exchange(released_, true)) --counts_.contexts;
  if (std::exchange(running_, {}) != pass_number{}) counts_.pass_ended(false);
  remains result{std::exchange(sends_, {}), {}};
  if (parts_) *parts_ -= tasks_.size();
  for (auto& [number, task] : std::exchange(tasks_, {})) result.tasks.push_back(std::move(task));
  return result;
}

}  // namespace troupe::passes
