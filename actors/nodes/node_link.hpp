// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/nodes/node_link_test.cpp, tests/actors/ended_node_test.cpp
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe {

class node;

}  // namespace troupe

namespace troupe::nodes {

class node_runtime;

/// Connects the objects that a node has handed out (peers, contexts, modules, optimizers) with the node. The link outlives the
/// node. Any thread may use a link.
///   LK-1  after close() no visit begins: objects that the node has handed out fail with `stopping`.
///   LK-2  while a visit lasts, the runtime of the node is not destroyed: drain() waits for all visits.
///   LK-3  here() gives the node until forget_node(), and then throws troupe::error (stopping).
class node_link {
 public:
  node_link(node& here, node_runtime& runtime, node_id id, std::string name)
      : here_(&here), runtime_(runtime), id_(id), name_(std::move(name)) {}
  node_link(const node_link&) = delete;
  node_link& operator=(const node_link&) = delete;

  node_id id() const noexcept { return id_; }
  node& here() const {
    if (auto* found = here_.load()) return *found;
    throw has_ended();
  }
  error has_ended() const { return error(errc::stopping, "node '" + name_ + "' has stopped"); }

  /// For the node's end: first close(), then forget_node(), then drain(). drain() must not be called within a visit.
  void close() noexcept { closed_ = true; }
  void forget_node() noexcept { here_ = nullptr; }
  void drain() noexcept {
    close();
    for (auto left = visits_.load(); left != 0; left = visits_.load()) visits_.wait(left);
  }

 private:
  friend class visit;

  std::atomic<node*> here_;
  node_runtime& runtime_;
  const node_id id_;
  const std::string name_;
  std::atomic<bool> closed_{false};
  std::atomic<std::size_t> visits_{0};
};

/// While a visit lasts, the runtime of its node is not destroyed. The link has to outlive the visit.
class visit {
 public:
  explicit visit(node_link& by) noexcept : by_(by) {
    ++by_.visits_;
    begun_ = !by_.closed_;  // read after counting: either drain() sees the count, or this thread sees the end
    if (!begun_) leave();
  }
  ~visit() {
    if (begun_) leave();
  }
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;

  /// False if the node had begun to end before the visit began.
  explicit operator bool() const noexcept { return begun_; }
  /// Throws troupe::error (stopping) if the node had begun to end before.
  node_runtime* operator->() const {
    if (!begun_) throw by_.has_ended();
    return &by_.runtime_;
  }

 private:
  void leave() noexcept {
    if (--by_.visits_ == 0 && by_.closed_) by_.visits_.notify_all();
  }

  node_link& by_;
  bool begun_ = false;
};

}  // namespace troupe::nodes
