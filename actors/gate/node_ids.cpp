// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/node_ids.hpp>

#include <algorithm>
#include <new>
#include <vector>

#include <caf/binary_serializer.hpp>
#include <caf/node_id.hpp>

namespace troupe::gate {

void node_ids::set_own(std::string id) {
  checked_lock lock(mutex_);
  own_ = std::move(id);
}

std::string node_ids::own() const {
  checked_lock lock(mutex_);
  return own_;
}

node_ids::hold node_ids::take(const std::string& id, const certificates::identity& who) {
  auto until_given_back = [all = shared_from_this(), held = std::string(id)](const void*) { all->give_back(held); };
  auto* const questions = hold_questions(id, who);
  if (questions == nullptr) return nullptr;
  // The mutex is not held here: if there is no memory for the control block of the shared_ptr, the deleter runs at once and
  // locks the mutex.
  return {questions, std::move(until_given_back)};
}

open_questions* node_ids::hold_questions(const std::string& id, const certificates::identity& who) {
  checked_lock lock(mutex_);
  auto& found = all_[id];
  if (found.holds > 0 && found.who.node != who.node) return nullptr;
  if (const auto of_same = parted_.find(who.node); of_same != parted_.end()) {
    auto& parted = of_same->second;
    const auto before = std::find_if(parted.begin(), parted.end(), [&](const auto& each) { return each.first == id; });
    if (before != parted.end()) {
      found.questions = std::move(before->second);
      parted.erase(before);
      if (parted.empty()) parted_.erase(of_same);
    }
  }
  found.who = who;
  ++found.holds;
  return &found.questions;
}

node_ids::connection_count node_ids::add_connection(const std::string& node) {
  auto until_it_ends = [all = shared_from_this(), node = std::string(node)](const void*) { all->end_connection(node); };
  {
    checked_lock lock(mutex_);
    auto& count = connections_[node];
    if (count == most_connections) return nullptr;
    ++count;
  }
  // The mutex is not held here: if there is no memory for the control block of the shared_ptr, the deleter runs at once and
  // locks the mutex.
  return {this, std::move(until_it_ends)};
}

void node_ids::end_connection(const std::string& node) noexcept {
  checked_lock lock(mutex_);
  if (const auto found = connections_.find(node); found != connections_.end() && --found->second == 0)
    connections_.erase(found);
}

bool node_ids::unfinished_message::has(std::size_t bytes) noexcept {
  if (bytes == bytes_) return true;
  checked_lock lock(all_->mutex_);
  try {
    auto& count = all_->unfinished_[node_];
    count = count - bytes_ + bytes;
    bytes_ = bytes;
    if (count > 0) return count <= most_unfinished;
    all_->unfinished_.erase(node_);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::optional<certificates::identity> node_ids::find(const std::string& id) const {
  checked_lock lock(mutex_);
  const auto found = all_.find(id);
  return found == all_.end() ? std::nullopt : std::optional(found->second.who);
}

void node_ids::give_back(const std::string& id) noexcept {
  checked_lock lock(mutex_);
  const auto found = all_.find(id);
  if (found == all_.end() || --found->second.holds > 0) return;
  try {
    if (!found->second.questions.empty()) {
      auto& parted = parted_[found->second.who.node];
      parted.emplace_back(id, std::move(found->second.questions));
      if (parted.size() > most_parted) parted.pop_front();
    }
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the questions are forgotten
  }
  all_.erase(found);
}

std::string bytes_of(const caf::node_id& who) {
  std::vector<char> bytes;
  caf::binary_serializer to(nullptr, bytes);
  caf::node_id copy = who;
  return to(copy) ? std::string() : std::string(bytes.begin(), bytes.end());
}

}  // namespace troupe::gate
