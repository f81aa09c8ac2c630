// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/pipeline_test.cpp, tests/apps/charlm/gradient_check_test.cpp, tests/apps/train_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>

#include "apps/charlm/model.hpp"

namespace troupe::apps::charlm {

inline constexpr const char* stage_type = "charlm.stage";

/// Returns the attributes with which a node creates a stage: the model's shape, the stage's index and the number of stages, the
/// seed of the parameters, and the device on which the stage computes.
attributes stage_attributes(const model_shape& shape, stage_position position, std::uint64_t seed,
                            const std::string& device = "cpu");

/// Makes the module of a stage. Its methods are:
///   `follow`    tells a stage that is not the last one which stage is next: the value `next` is a reference
///               (remote_module::lend)
///   `forward`   takes the input of the stage and the targets, and the value `share`; returns character_loss(logits, targets,
///               share). Each stage but the last calls the next stage. So hidden values never pass through the node that calls
///               the first stage. The loss comes back on the CPU, whichever device the stages are on.
///   `evaluate`  is `forward` without a graph
///   `threads`   returns how many threads libtorch uses inside one operation on the stage's node
std::shared_ptr<module> make_stage_module(std::shared_ptr<stage> of, stage_position position);

void add_stage_type(node& here);

/// The parameters and the buffers of a stage, by the names that the stage gives them. The model has no buffers so far.
named_tensors parameters_of(const stage& of);
named_tensors buffers_of(const stage& of);

}  // namespace troupe::apps::charlm
