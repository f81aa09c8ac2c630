// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/pipeline_test.cpp, tests/apps/charlm/gradient_check_test.cpp, tests/apps/train_test.cpp
#pragma once

#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>

#include "apps/charlm/model.hpp"

namespace troupe::apps::charlm {

inline constexpr const char* stage_type = "charlm.stage";

/// The attributes with which a node creates a stage: the model's shape, which stage of how many, and the seed of the
/// parameters.
attributes stage_attributes(const model_shape& shape, stage_position position, std::uint64_t seed);

/// Registers stage_type on a node. The methods of a stage are: `forward`; `evaluate`, which is `forward` without a graph; and
/// `threads`, which returns how many threads libtorch uses inside one operation on the stage's node.
void add_stage_type(node& here);

/// The parameters of a stage by the names that the stage gives them, and its buffers. The model has no buffers so far.
named_tensors parameters_of(const stage& of);
named_tensors buffers_of(const stage& of);

}  // namespace troupe::apps::charlm
