// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/drop_in/install.hpp>
#include <troupe/engine/torch_compat.hpp>

namespace troupe::test {

/// Installs troupe's engine until the end of the scope.
struct installed {
  installed() { install_engine(); }
  ~installed() { uninstall_engine(); }
  installed(const installed&) = delete;
  installed& operator=(const installed&) = delete;
};

/// True if the pass that runs on this thread is on troupe's engine.
bool inside_troupe();

/// What `run` returns on libtorch's engine and then on troupe's.
struct outcomes {
  std::vector<std::string> libtorch;
  std::vector<std::string> troupe;
};
outcomes on_both(const std::function<std::vector<std::string>()>& run);

/// A function of a graph that calls `what` and has one input like `like`.
engine::node_pointer make_function(std::string name,
                                   std::function<torch::autograd::variable_list(torch::autograd::variable_list)> what,
                                   const at::Tensor& like, torch::autograd::edge_list next);

/// A tensor whose gradient goes through `what` and then to `from`.
at::Tensor through(const at::Tensor& from, std::function<at::Tensor(at::Tensor)> what, std::string name = "through");

/// What `run` throws: the text of a c10::Error; "std: " and the text of another std::exception; "none" if it throws nothing.
std::string error_of(const std::function<void()>& run);

/// The values of a tensor as text, for a comparison bit by bit.
std::string text_of(const at::Tensor& tensor);

}  // namespace troupe::test
