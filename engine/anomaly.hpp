// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <torch/csrc/autograd/function.h>

/// Functions that a pass uses only in libtorch's anomaly mode. They check outputs for NaN, record which function created which
/// other functions, and report where a failed function was created.
namespace troupe::engine {

class plan;

/// Throws c10::Error, as libtorch does, if an output contains NaN.
void check_for_nan(torch::autograd::Node& function, const torch::autograd::variable_list& outputs);

/// Makes `parent` the parent of each function in the graph of `outputs` that this thread has created since sequence number
/// `made_from`.
void adopt_outputs(torch::autograd::Node& parent, std::uint64_t made_from, const torch::autograd::variable_list& outputs);

/// Makes `parent` the parent of those functions of `graph` that this thread has created since sequence number `made_from`.
/// `parent` is the function that started the pass over `graph`.
void adopt_functions(torch::autograd::Node& parent, std::uint64_t made_from, const plan& graph);

/// Warns with the forward stack traces of the function and its parents, as libtorch does. Returns the text of the warnings.
std::string print_trace(torch::autograd::Node& function);

}  // namespace troupe::engine
