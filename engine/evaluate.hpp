// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

class gradient_table;
struct pass_notes;

/// Makes the gradients fit what their edges lead to: reduces expanded ones, casts, moves zero-dim ones, as libtorch does. Where
/// they can't be made to fit, throws c10::Error with the text that `describe` makes of the reason.
void validate(const torch::autograd::edge_list& edges, torch::autograd::variable_list& gradients,
              const std::function<std::string(const std::string&)>& describe);

/// Runs one function with everything around it: hooks, validation, release of saved variables, what anomaly mode adds.
///   EV-1  an accumulation function with `leaves` set puts its gradient there and leaves `.grad` alone; its hooks run.
///   EV-2  an output that nothing takes is dropped unseen, neither validated nor checked for NaN. A function with post-hooks
///         keeps all of its outputs, validated: the hooks see them, as in libtorch.
/// `inputs` is left empty. Its tensors are freed before the outputs come back, so that sums may reuse their memory.
struct evaluation {
  bool keep_graph = false;
  bool pruned = false;  // some outputs may lead nowhere: `next` says which
  gradient_table* leaves = nullptr;
  const pass_notes* anomaly = nullptr;  // set in anomaly mode

  torch::autograd::variable_list operator()(torch::autograd::Node& function, torch::autograd::variable_list& inputs,
                                            const plan::edge* next) const;
};

}  // namespace troupe::engine
