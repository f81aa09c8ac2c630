// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/module.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/objects/optimizer_kind.hpp>
#include <troupe/actors/optimizer_settings.hpp>
#include <troupe/engine/gradient_table.hpp>

namespace troupe::objects {

/// Sums of squares of gradients, one for each parameter, so that their total does not depend on which node holds what.
struct squared_norms {
  std::vector<double> sums;  // 0 where a parameter has no gradient
  std::string not_finite;    // the first parameter whose sum is not, or empty
};

/// Throws troupe::error (misuse) unless it is a number from 0.
void check_learning_rate(double rate);

/// A libtorch optimizer over parameters of this process. Safe to use from several threads.
///   LO-1  a step gives the bits that libtorch's optimizer gives with the same gradients in `.grad`.
///   LO-2  `.grad` of the parameters and the gradients given are after a step what they were before.
///   LO-3  a parameter without a gradient, and the optimizer's state for it, stay as they are.
///   LO-4  what stage() refused changed nothing; what it accepted, apply() takes over whole: parameters, state, options,
///         buffers and the state of libtorch's default generator of random numbers.
///   LO-5  gathered gradients count for one step, which drops them, also when it throws; their sums are in the order of
///         gather().
class local_optimizer {
 public:
  /// Over the parameters of the modules, called `<index>/<name>`, then `local` ones. A parameter that is listed twice is
  /// stepped once. A checkpoint also has the modules' buffers, named in the same way, then `local_buffers`.
  local_optimizer(const optimizer_settings& settings, std::vector<std::shared_ptr<module>> modules, named_tensors local = {},
                  named_tensors local_buffers = {});
  ~local_optimizer();

  /// The current buffers, as a checkpoint names them.
  named_tensors buffers() const;

  /// How many parameters each module has, and after those the number of local ones.
  const std::vector<std::size_t>& counts() const noexcept { return counts_; }

  squared_norms norms(const engine::gradient_table& gradients) const;

  /// Steps every parameter that has a gradient, with the gradient times `scale`.
  void step(const engine::gradient_table& gradients, double scale = 1);

  /// Adds these gradients to the sum that the next gathered_step() uses.
  void gather(const engine::gradient_table& gradients);
  squared_norms gathered_norms() const;
  void gathered_step(double scale = 1);
  void forget_gathered() noexcept;

  void set_learning_rate(double rate);

  /// Writes parameters, state and the rest of what LO-4 names to `path`.
  support::file_digest save(const std::string& path, const std::string& node, const std::string& save_id) const;

  /// Reads a part and keeps it for apply(), if every name, shape and dtype fits and every tensor here can be overwritten;
  /// throws troupe::error naming the first that does not.
  void stage(const std::string& path, const support::file_digest& digest, const std::string& save_id);
  /// Overwrites what LO-4 names with what was staged from that save. Asks the modules for their buffers again: throws and
  /// changes nothing where a call since stage() put in a buffer that does not fit.
  void apply(const std::string& save_id);
  void discard() noexcept;

 private:
  void check(const checkpoint_part& part, const named_tensors& buffers) const;
  named_tensors buffers_for(const checkpoint_part& part) const;
  squared_norms norms_of(const engine::gradient_table& gradients) const;
  void step_with(const engine::gradient_table& gradients, double scale);

  mutable std::mutex mutex_;
  const optimizer_kind& kind_;
  std::vector<std::shared_ptr<module>> modules_;  // keeps what owns the parameters
  named_tensors parameters_;
  named_tensors local_buffers_;
  std::vector<std::size_t> counts_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  engine::gradient_table gathered_;
  std::optional<checkpoint_part> staged_;
};

}  // namespace troupe::objects
