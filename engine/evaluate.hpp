// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

class gradient_table;
class guest;
struct pass_notes;

/// Makes each gradient fit the input that its edge leads to, as libtorch does: sums expanded dimensions, casts, moves
/// zero-dimensional tensors to the right device. If a gradient cannot be made to fit, throws c10::Error with the text that
/// `describe` makes of the reason.
void validate(const torch::autograd::edge_list& edges, torch::autograd::variable_list& gradients,
              const std::function<std::string(const std::string&)>& describe);

/// Runs one function and everything that belongs to the run: hooks, validation, release of saved variables, checks of anomaly
/// mode.
///   EV-1  if `leaves` is set, an accumulation function adds its gradient to that table and leaves `.grad` alone. The
///         function's hooks run.
///   EV-2  an output that no function of the pass uses is dropped without validation and without a check for NaN. A function
///         with post-hooks keeps all of its outputs, validated, because the hooks see the outputs, as in libtorch.
/// The call leaves `inputs` empty. The input tensors are freed before the call returns, so that sums may reuse their memory.
struct evaluation {
  bool keep_graph = false;
  bool pruned = false;  // some outputs may be unused: their edges in `next` lead to no vertex
  gradient_table* leaves = nullptr;
  std::mutex* leaves_mutex = nullptr;   // held while the table changes, if given
  guest* of_guest = nullptr;            // takes the gradients of leaves (GU-2); used with `leaves`
  const pass_notes* anomaly = nullptr;  // null outside anomaly mode

  /// `next`: the edges of the function's outputs in the plan.
  /// `unreached`, if given: for each input, true if no function of the pass leads to it. The tensor hooks of such an input do
  /// not run.
  torch::autograd::variable_list operator()(torch::autograd::Node& function, torch::autograd::variable_list& inputs,
                                            const plan::edge* next, const std::vector<bool>* unreached = nullptr) const;
};

}  // namespace troupe::engine
