// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <torch/csrc/autograd/function.h>

/// What a pass does more in libtorch's anomaly mode: it looks for NaN, notes which function made which others, and says where
/// those of a failed function were made.
namespace troupe::engine {

class plan;

/// Throws, as libtorch does, if an output has a NaN in it.
void check_for_nan(torch::autograd::Node& function, const torch::autograd::variable_list& outputs);

/// Makes `parent` the parent of those functions behind `outputs` that this thread made from sequence number `made_from` on.
void adopt_outputs(torch::autograd::Node& parent, std::uint64_t made_from, const torch::autograd::variable_list& outputs);

/// The same for the functions of a pass that `parent` has begun.
void adopt_functions(torch::autograd::Node& parent, std::uint64_t made_from, const plan& graph);

/// Warns with the forward traces of the function and its parents, as libtorch does, and returns the text.
std::string print_trace(torch::autograd::Node& function);

}  // namespace troupe::engine
