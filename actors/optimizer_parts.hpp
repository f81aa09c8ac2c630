// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_test.cpp
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/actors/optimizer_settings.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/actors/remote_object.hpp>

namespace troupe {

/// The parts of an optimizer: a local_optimizer on every other node that holds modules, and one on this node. One thread at a
/// time may use the parts.
class optimizer_parts {
 public:
  /// The modules of one other node, and the local_optimizer over them on that node.
  struct group {
    peer where;
    std::vector<std::size_t> modules;  // indices in the optimizer's list
    std::shared_ptr<remote_object> object;
    std::vector<std::size_t> counts;  // parameters of each module

    /// Takes the reply of "troupe.optimizer.create".
    void add(const call_reply& made);
  };
  using values_for = std::function<attributes(const group&)>;

  /// Makes the parts. Throws the first error of a node; no part is left then.
  optimizer_parts(node& here, const optimizer_settings& settings, std::vector<remote_module> modules,
                  const named_tensors& local, named_tensors local_buffers);

  node& here() const noexcept { return here_; }
  objects::local_optimizer& local() noexcept { return *local_; }
  const std::vector<group>& groups() const noexcept { return groups_; }

  /// Whether the part of this node has parameters or buffers.
  bool has_local() const;
  /// Names of the nodes of which a checkpoint has a part. This node has a part even without parameters, for its random state.
  std::set<std::string> names() const;

  /// Calls the function on every other node at once, runs `meanwhile` on this node, and waits for all replies, even if one call
  /// fails. Throws the error of `meanwhile`, or else the first error in the order of groups(). Replies are in that order too.
  std::vector<call_reply> everywhere(const char* function, const values_for& values, const std::function<void()>& meanwhile);

  /// The norm of all gradients, or of the gathered gradients if `gradients` is null. Throws troupe::error (invalid_gradient)
  /// with the name of a parameter whose gradient is not finite.
  double norm(const engine::gradient_table* gradients);

 private:
  /// Sums of squares by module, local parameters last.
  using module_sums = std::vector<std::vector<double>>;
  void spread(module_sums& to, const std::vector<std::size_t>& indices, const std::vector<std::size_t>& counts,
              const double* sums) const;

  node& here_;
  std::vector<remote_module> modules_;  // keeps the modules alive
  std::vector<group> groups_;           // other nodes, in the order of their first modules
  std::vector<std::size_t> mine_;       // indices of modules of this node
  std::unique_ptr<objects::local_optimizer> local_;
};

}  // namespace troupe
