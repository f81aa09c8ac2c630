// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/context.hpp>
#include <troupe/actors/future.hpp>
#include <troupe/actors/optimizer_settings.hpp>
#include <troupe/actors/parameter_group.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/actors/unsure_step.hpp>

namespace troupe {

/// Steps parameters on the nodes where they live, with one libtorch optimizer on each of these nodes. One thread at a time may
/// use an optimizer.
///   OM-1  a step gives the same bits as one libtorch optimizer over all parameters. A clipped step scales all gradients by
///         min(1, clip / (norm + 1e-6)), with the norm in double; squares are summed in the order of the modules, then of the
///         local parameters.
///   OM-2  a clipped step refuses gradients that are not finite before anything is changed.
///   OM-3  a checkpoint that does not fit is refused before any node changes anything.
///   OM-6  the nodes need no shared disk. A checkpoint is written to the disk of this node alone, or to a disk of each node.
///   OM-4  a run that loads a checkpoint goes on with the same bits as the run that saved it. A checkpoint therefore has the
///         buffers of the modules too and, for the process of each node, the state of libtorch's default generator on the CPU.
///   OM-5  gathered gradients serve one step: the step drops them on every node, also if the step throws, unless it throws
///         unsure_step or the error of a save. A gather that fails and a load drop them too. Gradients are summed in the order
///         of the calls of gather().
///   OM-7  step() throws unsure_step if this node can't find out whether a node has made the step. No node makes a step twice:
///         a second try, or another change, completes the step on all nodes, gives up a step that no node has made, or names
///         the nodes that have made it. A late message of an earlier step or load changes nothing.
///   OM-8  parameter groups give the same bits as those of torch::optim. Each group has its options; the norm and the
///         checkpoint are over all groups.
///   OM-9  a checkpoint has the state at its save() or start_save(), bit by bit. An incomplete checkpoint is never loaded.
/// A node may go down or be cut off during a step: then this node can't find out whether that node has made the step. After
/// unsure_step a program can go on in three ways:
///   - the same step again: step() with the same context and no new pass of it, or step() after gather(). A node makes the same
///     step once, with the scale and the learning rate of the first try, and step() returns the norm of the first try.
///   - another step, a gather or a save: the optimizer first asks the nodes. If every node has made the step, or none, the
///     optimizer goes on. A step with gathered gradients is made on the nodes where it is missing. Otherwise unsure_step says
///     which nodes have made the step.
///   - load(): the checkpoint replaces all steps before it. After load() has thrown unsure_step, only load() is possible.
/// A node that was started again has lost its modules and its part of the optimizer: make both anew and load.
class optimizer {
 public:
  /// Makes an optimizer over the parameters of the remote modules and the parameters `local` of this node. Checkpoints hold the
  /// modules' buffers and `local_buffers`. Blocks; throws troupe::error.
  optimizer(node& here, optimizer_settings options, std::vector<remote_module> modules, const named_tensors& local = {},
            named_tensors local_buffers = {});
  /// Makes an optimizer with parameter groups, as torch::optim does. The order of the modules (OM-1) is that of the groups. A
  /// parameter in two groups is refused. Blocks; throws troupe::error.
  optimizer(node& here, const std::vector<parameter_group>& groups, optimizer_settings options,
            named_tensors local_buffers = {});
  ~optimizer();

  /// Steps every parameter with the gradient that the context gathered for it. Parameters without a gradient stay as they are.
  /// The context must be open on this thread, and a pass of the context must have completed. With `clip_norm` all gradients are
  /// scaled so that their norm over all nodes is at most `clip_norm`, and the norm before scaling is returned. Blocks; throws
  /// troupe::error.
  std::optional<double> step(const context& pass, std::optional<double> clip_norm = {});

  /// Adds the gradients of the context to the gathered gradients, which the next step without a context uses. So each part of a
  /// batch can have a context and a thread of its own. The context must be open on this thread, and a pass of the context must
  /// have completed. One thread gathers at a time. Blocks; throws troupe::error.
  void gather(const context& pass);
  /// Steps with the gradients that were gathered since the last step. Throws troupe::error (misuse) if none were gathered.
  std::optional<double> step(std::optional<double> clip_norm = {});

  /// Sets the learning rate from the next step on, of all parameter groups or of one (counted from 0). The nodes get the rate
  /// with the next step() or save(). A load() before that discards the rate.
  void set_learning_rate(double rate, std::optional<std::size_t> group = {});

  /// Saves a checkpoint to `folder` of this node: parameters, optimizer state, buffers and random state of each node. The other
  /// nodes send their parts to this node in pieces of 4 MiB. If `node_folder` is not empty, each other node writes its part to
  /// the folder `node_folder` below its own settings::data_dir instead; a node without a data folder refuses. If save() fails,
  /// `folder` keeps the checkpoint that it had (see checkpoint.hpp). A folder, of this node or of another one, holds the
  /// checkpoint of one optimizer: save() throws troupe::error (misuse) for a folder that another optimizer of this process has
  /// saved to or loaded from (OK-3). Blocks; throws troupe::error.
  void save(const std::string& folder, const attributes& about, const std::string& node_folder = {});
  /// Saves as save() does, but blocks only until each node has a copy of its state: steps go on while the checkpoint is
  /// written. The future is complete once the checkpoint is complete. Until then each node holds its part once more in memory,
  /// and the next save, a load and the destructor wait. If nobody has called `get` of the future, the next step or save throws
  /// the error of this save and does nothing else. If there is no next step or save, the error goes to stderr.
  future<done> start_save(const std::string& folder, const attributes& about, const std::string& node_folder = {});
  /// Throws troupe::error with node, folder and reason, unless save() may write to these folders and the disks have space.
  /// Leaves nothing on any disk. Blocks.
  void expect_disk_space(const std::string& folder, const std::string& node_folder = {});
  /// Loads the checkpoint, the learning rate included, and returns `about`. This node sends each part that lies in `folder` to
  /// its node. A part that lies in a folder of its own node is read by that node. Throws if nodes, names, shapes or dtypes do
  /// not fit; the error names a parameter or buffer that only the checkpoint has, or only the model. If this node has no
  /// parameters and no buffers, its name may differ from that of the node that saved.
  attributes load(const std::string& folder);

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace troupe
