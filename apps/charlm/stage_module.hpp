// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>

#include "apps/charlm/model.hpp"

namespace troupe::apps::charlm {

inline constexpr const char* stage_type = "charlm.stage";

/// What a node needs to make a stage of stage_type: the model's shape, which stage of how many, the seed of its first
/// parameters.
attributes stage_attributes(const model_shape& shape, stage_place place, std::uint64_t seed);

/// Registers stage_type on a node. Its methods: `forward`; `evaluate`, the same without a graph; `threads`, the value of that
/// name: how many libtorch uses inside one operation there.
void add_stage_type(node& here);

/// The parameters of a stage by name, the stage's own, and its buffers, of which the model so far has none.
named_tensors parameters_of(const stage& of);
named_tensors buffers_of(const stage& of);

}  // namespace troupe::apps::charlm
