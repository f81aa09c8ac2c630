// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe {

namespace engine {
class cpu_workers;
}

/// Computes the gradients of the roots on this thread and adds these gradients to `.grad` of the leaves, as
/// torch::autograd::backward does.
/// `gradients`: one per root, of the root's shape; an empty list or an undefined tensor means 1 for a scalar root.
/// `inputs`: if not empty, only these tensors get a gradient.
void backward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients = {}, bool keep_graph = false,
              bool create_graph = false, const std::vector<at::Tensor>& inputs = {});

/// Returns the gradients of the roots with respect to `inputs`, as torch::autograd::grad does.
std::vector<at::Tensor> grad(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& gradients = {}, bool keep_graph = false, bool create_graph = false,
                             bool allow_unused = false);

struct pass_options {
  bool keep_graph = false;
  bool create_graph = false;
  std::vector<at::Tensor> inputs = {};     // backward() only: if not empty, only these tensors get a gradient
  bool allow_unused = false;               // grad() only: an input may be unused by the roots
  engine::cpu_workers* workers = nullptr;  // run large functions in parallel, with the same bits (see worker_team)
};

/// backward() and grad() with options. With workers, functions and their hooks may run in parallel and on the threads of the
/// workers. Then functions may depend on each other through gradients only. Two functions that draw from one random generator,
/// for example, must not run with workers.
void backward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients, const pass_options& options);
std::vector<at::Tensor> grad(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& gradients, const pass_options& options);

}  // namespace troupe
