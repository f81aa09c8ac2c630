// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/context.hpp>
#include <troupe/actors/optimizer_settings.hpp>
#include <troupe/actors/remote_module.hpp>

namespace troupe {

/// Steps parameters where they live: one libtorch optimizer on every node that holds some of them. Not for several threads at
/// once.
///   OM-1  a step gives the bits that one libtorch optimizer over all parameters gives; a clipped one too, where the gradients
///         are scaled by min(1, clip / (norm + 1e-6)) with the norm in double, summed in the order modules, then local.
///   OM-2  gradients that are not finite are refused by a clipped step before anything is changed.
///   OM-3  a checkpoint that does not fit is refused before any node changes anything.
///   OM-4  a run that loads a checkpoint goes on with the bits of the run that saved it. For that, a checkpoint has the modules'
///         buffers and, of each node's process, the state of libtorch's default generator on the CPU.
///   OM-5  gathered gradients count for one step. The step drops them on every node, also when it throws, and so does a gather that
///         fails. Their sums are in the order of gather().
class optimizer {
 public:
  /// Over the parameters of remote modules and, on this node, `local` ones. Checkpoints hold the modules' buffers and
  /// `local_buffers`. Blocks; throws troupe::error.
  optimizer(node& here, optimizer_settings options, std::vector<remote_module> modules, named_tensors local = {},
            named_tensors local_buffers = {});
  ~optimizer();

  /// Steps every parameter with the gradient the context gathered for it; parameters without one stay as they are. The context
  /// must be open on this thread, and a pass of it have completed. `clip_norm`: scales all gradients so that their norm over all
  /// nodes is at most this. Returns the norm before clipping when clipping, otherwise nothing. Blocks; throws troupe::error.
  std::optional<double> step(const context& pass, std::optional<double> clip_norm = {});

  /// Adds the gradients of the context to those of the next step that names no context. So a batch can be cut into parts that
  /// have a context and a thread each. The context must be open on this thread, and a pass of it have completed; one thread
  /// gathers at a time. Blocks; throws troupe::error.
  void gather(const context& pass);
  /// Steps with the gradients that were gathered since the last step. Throws troupe::error (misuse) if none were gathered.
  std::optional<double> step(std::optional<double> clip_norm = {});

  /// Sets the learning rate of every node from the next step on. That step carries the rate to the nodes.
  void set_learning_rate(double rate);

  /// Writes, on each node, its parameters, optimizer state, buffers and random state to `folder`, which all nodes must share, and
  /// makes these files its checkpoint: all of them or none (see checkpoint.hpp). A folder holds one optimizer's checkpoint.
  void save(const std::string& folder, const attributes& about);
  /// Reads it back, learning rate included, and returns `about`. Throws when nodes, names, shapes or dtypes do not fit, also of
  /// buffers: what only one side has is refused by its name. A node here without parameters and buffers may have another name
  /// than the node that saved.
  attributes load(const std::string& folder);

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace troupe
