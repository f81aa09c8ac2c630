// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/released_contexts.hpp>

#include <iterator>

namespace troupe::passes {

void released_contexts::add(const context_id& id) {
  if (contains(id)) return;
  auto stretch = last_.emplace(id, id.number).first;
  if (auto next = std::next(stretch); next != last_.end() && next->first == context_id{id.node, id.number + 1}) {
    stretch->second = next->second;
    last_.erase(next);
  }
  if (stretch != last_.begin())
    if (auto before = std::prev(stretch); before->first.node == id.node && before->second + 1 == id.number) {
      before->second = stretch->second;
      last_.erase(stretch);
    }
  if (last_.size() <= limit_) return;
  auto oldest = last_.lower_bound({id.node, 0});
  last_.erase(oldest->first == id ? last_.begin() : oldest);
}

bool released_contexts::contains(const context_id& id) const {
  auto after = last_.upper_bound(id);
  if (after == last_.begin()) return false;
  const auto& [first, last] = *std::prev(after);
  return first.node == id.node && id.number <= last;
}

void released_contexts::forget(node_id node) {
  last_.erase(last_.lower_bound({node, 0}), last_.upper_bound({node, UINT64_MAX}));
}

}  // namespace troupe::passes
