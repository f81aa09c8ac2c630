// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_test.cpp
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/actors/optimizer_settings.hpp>
#include <troupe/actors/parameter_group.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/actors/remote_object.hpp>
#include <troupe/messages/requests.hpp>

namespace troupe {

/// The shards of an optimizer: a local_optimizer on every other node that holds modules, and one on this node. Any thread may
/// use the shards.
class optimizer_shards {
 public:
  /// The modules of one other node, and the local_optimizer over them on that node.
  struct group {
    peer where;
    std::vector<std::size_t> modules;  // indices in the optimizer's list
    std::shared_ptr<remote_object> object;
    std::vector<std::size_t> counts;  // parameters of each module

    /// Reads the node's reply to requests::create_optimizer.
    void add(const call_reply& made);
  };
  using request_for = std::function<request(const group&)>;

  /// The outcome of one request to several nodes.
  struct answers {
    std::vector<std::optional<call_reply>>
      replies;                   // in the order of groups(); empty for a node that did not answer or was not asked
    bool here = false;           // whether `meanwhile` has run on this node without an error
    std::exception_ptr failure;  // the error of this node, or else the first one in the order of groups()
  };

  /// Makes the shards. Throws the first error of a node; no shard is left then.
  optimizer_shards(node& here, const optimizer_settings& settings, const std::vector<parameter_group>& groups,
                   named_tensors local_buffers);

  /// This node. Throws troupe::error (stopping) once it has begun to stop.
  const peer& here() const;
  objects::local_optimizer& local() noexcept { return *local_; }
  const std::vector<group>& groups() const noexcept { return groups_; }

  /// The number of parameter groups.
  std::size_t parameter_groups() const noexcept { return options_.size(); }
  /// A text that describes the optimizer in errors. Never null; lives as long as the shards.
  const std::shared_ptr<const std::string>& description() const noexcept { return description_; }

  /// Whether the shard of this node has parameters or buffers.
  bool has_local() const;
  /// Names of the nodes that have a part in a checkpoint. This node has a part even without parameters, for its random state.
  std::set<std::string> names() const;

  /// Throws what ask() would throw before anything is sent: troupe::error (misuse) in a continuation, which can't wait, and
  /// troupe::error (stopping) once this node has begun to stop.
  void expect_to_ask() const;
  /// Asks all other nodes at the same time, except those in `but_not` (indices of groups()). Meanwhile runs `meanwhile` on this
  /// node. Waits for all replies, even if one call fails.
  answers ask(const std::set<std::size_t>& but_not, const request_for& what, const std::function<void()>& meanwhile);
  /// As ask(), for all nodes. Throws the failure, if there is one. Replies are in the order of groups().
  std::vector<call_reply> everywhere(const request_for& what, const std::function<void()>& meanwhile);
  std::vector<call_reply> everywhere(const request& what, const std::function<void()>& meanwhile) {
    return everywhere([&](const group&) { return what; }, meanwhile);
  }

  /// The norm of the gradients on all nodes: of the open context, or of the gathered gradients if `gradients` is null.
  /// `gradients`: the gradients of the context on this node. Throws troupe::error (invalid_gradient) with the name of a
  /// parameter whose gradient is not finite.
  double norm(const engine::gradient_table* gradients);

 private:
  /// Sums of squares by module, local parameters last.
  using module_sums = std::vector<std::vector<double>>;
  void spread(module_sums& to, const std::vector<std::size_t>& indices, const std::vector<std::size_t>& counts,
              const double* sums) const;

  peer here_;
  std::vector<remote_module> modules_;  // keeps the modules alive
  std::vector<attributes> options_;     // of each parameter group
  std::vector<group> groups_;           // other nodes, in the order of their first modules
  std::vector<std::size_t> mine_;       // indices of modules of this node
  std::unique_ptr<objects::local_optimizer> local_;
  std::shared_ptr<const std::string> description_;
};

}  // namespace troupe
