// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/context_record.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::passes {

bool context_record::add(engine::send_source send, node_id to, std::vector<engine::recording> recordings) {
  std::lock_guard lock(mutex_);
  if (released_) return false;
  if (send.function) sends_.push_back(std::move(send));
  std::move(recordings.begin(), recordings.end(), std::back_inserter(recordings_));
  if (to != node_id{} && to != here_) peers_.insert(to);
  return true;
}

void context_record::brief(call_request& request) const {
  std::lock_guard lock(mutex_);
  request.completed = completed_;
  request.failed.assign(failed_.begin(), failed_.end());
}

void context_record::joined(const std::vector<node_id>& nodes) {
  std::lock_guard lock(mutex_);
  peers_.insert(nodes.begin(), nodes.end());
  peers_.erase(here_);
}

void context_record::left(node_id who) {
  std::lock_guard lock(mutex_);
  peers_.erase(who);
}

std::vector<node_id> context_record::peers() const {
  std::lock_guard lock(mutex_);
  return {peers_.begin(), peers_.end()};
}

bool context_record::take_news(const call_request& request) {
  std::lock_guard lock(mutex_);
  profiled_ = profiled_ || request.span != 0;
  if (has_gradients_ || !request.failed.empty()) return false;
  completed_ = std::max(completed_, request.completed);
  return true;
}

std::optional<context_record::start> context_record::begin(bool at_once) {
  std::lock_guard lock(mutex_);
  if (running_ != pass_number{} || released_ || (at_once && ungathered_)) return std::nullopt;
  running_ = current_ = {current_.value + 1};
  ++counts_.passes_running;
  has_gradients_ = ungathered_ = true;
  return start{current_, sends_, peers_, recordings_};
}

std::optional<context_record::start> context_record::follow(pass_number number) {
  std::lock_guard lock(mutex_);
  if (number <= current_) return std::nullopt;
  current_ = number;
  has_gradients_ = ungathered_ = true;
  return start{current_, sends_, {}, {}};
}

void context_record::hand_over(pass_number number, caf::strong_actor_ptr task) {
  std::lock_guard lock(mutex_);
  handed_over_.emplace_back(number, std::move(task));
}

std::vector<std::pair<pass_number, caf::strong_actor_ptr>> context_record::take_over() {
  std::lock_guard lock(mutex_);
  return std::exchange(handed_over_, {});
}

void context_record::end(pass_number number, bool succeeded) {
  std::lock_guard lock(mutex_);
  if (running_ == number) {
    running_ = {};
    counts_.pass_ended(succeeded);
  }
  if (succeeded)
    completed_ = std::max(completed_, number);
  else
    failed_.insert(number);
}

void context_record::fail(pass_number number) {
  std::lock_guard lock(mutex_);
  failed_.insert(number);
}

void context_record::skip(pass_number number) {
  std::lock_guard lock(mutex_);
  current_ = std::max(current_, number);
  failed_.insert(number);
}

void context_record::complete(pass_number number) {
  std::lock_guard lock(mutex_);
  completed_ = std::max(completed_, number);
}

void context_record::gathered() {
  std::lock_guard lock(mutex_);
  ungathered_ = false;
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

std::vector<engine::send_source> context_record::release() {
  std::lock_guard lock(mutex_);
  if (!std::exchange(released_, true)) --counts_.contexts;
  if (std::exchange(running_, {}) != pass_number{}) counts_.pass_ended(false);
  return std::exchange(sends_, {});
}

}  // namespace troupe::passes
