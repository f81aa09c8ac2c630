// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe {

namespace engine {
class cpu_workers;
}

/// Sums the gradients of the roots into `.grad` of the leaves, as torch::autograd::backward does, on this thread.
/// `gradients`: of the roots, same shapes; empty or undefined means ones, for scalar roots. `inputs`: only these leaves.
void backward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients = {}, bool keep_graph = false,
              bool create_graph = false, const std::vector<at::Tensor>& inputs = {});

/// The gradients of the roots with respect to `inputs`, as torch::autograd::grad does.
std::vector<at::Tensor> grad(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& gradients = {}, bool keep_graph = false, bool create_graph = false,
                             bool allow_unused = false);

/// How a pass runs.
struct pass_options {
  bool keep_graph = false;
  bool create_graph = false;
  std::vector<at::Tensor> inputs = {};     // of backward(): only these leaves
  bool allow_unused = false;               // of grad()
  engine::cpu_workers* workers = nullptr;  // run large functions beside each other, with the same bits (see worker_team)
};

/// The same, with options. With workers, hooks of different functions may run at once and on their threads; functions must
/// not depend on each other but through gradients, as two that draw from one random generator do.
void backward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients, const pass_options& options);
std::vector<at::Tensor> grad(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& gradients, const pass_options& options);

}  // namespace troupe
