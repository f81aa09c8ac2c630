// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/engine/plan.hpp>
#include <troupe/engine/ready_queue.hpp>

namespace troupe::engine {

/// The parts of a graph task that grow with its graph. Each thread keeps the last workspace for its next task, unless the
/// workspace is large. Short passes would otherwise spend most of their time in the allocator.
struct workspace {
  /// An empty workspace, with the memory that an earlier task of this thread gave back.
  static std::unique_ptr<workspace> acquire();

  /// Frees the tensors and keeps the memory for the next task of this thread.
  static void give_back(std::unique_ptr<workspace> used) noexcept;

  plan graph;
  std::vector<at::Tensor> slots;  // inputs of all functions
  ready_queue ready;
  std::vector<at::Tensor> inputs;  // inputs of the function that runs
};

}  // namespace troupe::engine
