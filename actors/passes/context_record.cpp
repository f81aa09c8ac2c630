// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/context_record.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <troupe/messages/errors.hpp>

namespace troupe::passes {

void context_record::count_in(std::shared_ptr<task_count> tasks) {
  checked_lock lock(mutex_);
  tasks_of_opener_ = std::move(tasks);
}

bool context_record::add(engine::send_source send, node_id to, std::vector<engine::recording> recordings) {
  checked_lock lock(mutex_);
  if (released_) return false;
  if (send.function) sends_.push_back(std::move(send));
  std::move(recordings.begin(), recordings.end(), std::back_inserter(recordings_));
  if (to != node_id{}) members.called(to);
  return true;
}

void context_record::end_recording(const engine::recording& which) {
  const auto now = engine::recording_from_now({}).from;
  checked_lock lock(mutex_);
  const auto found = std::find_if(recordings_.rbegin(), recordings_.rend(), [&](const engine::recording& each) {
    return each.thread == which.thread && each.from == which.from && each.place == which.place;
  });
  if (found != recordings_.rend()) found->to = now;
}

std::vector<contracts::graph_task_actor> context_record::learn(pass_number completed, const std::vector<pass_number>& failed) {
  checked_lock lock(mutex_);
  std::vector<contracts::graph_task_actor> lost;
  if (members.is_opener()) return lost;
  const auto news = passes_.count_news(failed);
  if (passes_.count_failed() + news > most_failed)
    throw error(errc::refused, "the context " + to_string(id_) + " has more than " + std::to_string(most_failed) +
                                 " failed passes; open another context");
  if (news > 0) passes_.add_failed(failed);
  for (const pass_number number : failed)
    if (auto task = take_task(number)) lost.push_back(std::move(task));
  passes_.completed = std::max(passes_.completed, completed);
  return lost;
}

bool context_record::lacks(pass_number completed, const std::vector<pass_number>& failed) const {
  checked_lock lock(mutex_);
  return !tasks_.empty() || (passes_.has_gradients && (completed > passes_.completed || passes_.count_news(failed) > 0));
}

std::optional<context_record::start> context_record::begin(bool at_once) {
  checked_lock lock(mutex_);
  if (passes_.is_running() || released_ || (at_once && (passes_.is_gathering || !tasks_.empty()))) return std::nullopt;
  passes_.running = passes_.current = {passes_.current.value + 1};
  ++counts_.passes_running;
  passes_.has_gradients = true;
  const auto peers = members.peers();
  return start{passes_.current, sends_, {peers.begin(), peers.end()}, recordings_, {}};
}

std::optional<context_record::start> context_record::follow(pass_number number) {
  checked_lock lock(mutex_);
  if (is_over(number) || is_crowded()) return std::nullopt;
  passes_.current = number;
  passes_.has_gradients = true;
  return start{passes_.current, sends_, {}, {}, members.position()};
}

bool context_record::is_over(pass_number number) const {
  return released_ || number <= passes_.current || passes_.has_failed(number);
}

bool context_record::lacks_capacity_for(pass_number number) const {
  checked_lock lock(mutex_);
  return is_crowded() && !is_over(number);
}

bool context_record::set_task(pass_number number, contracts::graph_task_actor task) {
  checked_lock lock(mutex_);
  if (!released_ && tasks_.emplace(number, std::move(task)).second && tasks_of_opener_) ++*tasks_of_opener_;
  return !released_;
}

contracts::graph_task_actor context_record::task_of(pass_number number) const {
  checked_lock lock(mutex_);
  const auto found = tasks_.find(number);
  return found == tasks_.end() ? contracts::graph_task_actor{} : found->second;
}

std::vector<contracts::graph_task_actor> context_record::tasks() const {
  checked_lock lock(mutex_);
  std::vector<contracts::graph_task_actor> result;
  for (const auto& [number, task] : tasks_) result.push_back(task);
  return result;
}

contracts::graph_task_actor context_record::take_task(pass_number number) {
  const auto found = tasks_.find(number);
  if (found == tasks_.end()) return {};
  auto task = std::move(found->second);
  tasks_.erase(found);
  if (tasks_of_opener_) --*tasks_of_opener_;
  return task;
}

void context_record::end(pass_number number, bool succeeded) {
  contracts::graph_task_actor lost;  // destroyed after the lock is released
  checked_lock lock(mutex_);
  if (passes_.running == number) {
    passes_.running = {};
    counts_.pass_ended(succeeded);
  }
  if (succeeded) {
    passes_.completed = std::max(passes_.completed, number);
    return;
  }
  passes_.add_failed({number});
  lost = take_task(number);
}

contracts::graph_task_actor context_record::skip(pass_number number) {
  checked_lock lock(mutex_);
  if (members.is_opener() && number > passes_.current) return {};
  passes_.current = std::max(passes_.current, number);
  if (passes_.count_failed() < most_failed) passes_.add_failed({number});  // otherwise later calls are refused (CR-7)
  return take_task(number);
}

contracts::graph_task_actor context_record::next_to_gather() {
  checked_lock lock(mutex_);
  const auto oldest = tasks_.begin();
  passes_.is_gathering = oldest != tasks_.end() && oldest->first <= passes_.completed;
  return passes_.is_gathering ? take_task(oldest->first) : contracts::graph_task_actor{};
}

std::vector<engine::recording> context_record::recordings() const {
  checked_lock lock(mutex_);
  return recordings_;
}

context_record::remains context_record::release() {
  checked_lock lock(mutex_);
  if (!std::exchange(released_, true)) --counts_.contexts;
  if (std::exchange(passes_.running, {}) != pass_number{}) counts_.pass_ended(false);
  remains result{std::exchange(sends_, {}), {}};
  if (tasks_of_opener_) *tasks_of_opener_ -= tasks_.size();
  for (auto& [number, task] : std::exchange(tasks_, {})) result.tasks.push_back(std::move(task));
  return result;
}

}  // namespace troupe::passes
