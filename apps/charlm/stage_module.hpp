// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/pipeline_test.cpp, tests/apps/charlm/gradient_check_test.cpp, tests/apps/train_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>

#include "apps/charlm/model.hpp"
#include "apps/charlm/schedule.hpp"

namespace troupe::apps::charlm {

inline constexpr const char* stage_type = "charlm.stage";

/// Returns the attributes with which a node creates a stage: the model's shape, the stage's index and the number of stages, the
/// seed of the parameters, the device on which the stage computes, and the schedule of its work.
attributes stage_attributes(const model_shape& shape, stage_position position, std::uint64_t seed,
                            const std::string& device = "cpu", schedule order = schedule::dataflow);

/// Makes the module of a stage. Its methods are:
///   `follow`    tells a stage that is not the first one which stage is before it: the value `previous` is a reference
///               (remote_module::lend)
///   `forward`   takes tokens, and returns the hidden values of a micro-batch. The last stage takes the targets too, and the
///               value `share`; it returns character_loss(logits, targets, share), on the CPU, whichever device the stages are
///               on. The value `micro_batch` is the number of the micro-batch. Each stage but the first calls the stage before
///               it. So hidden values never pass through the node that calls the last stage.
///   `evaluate`  is `forward` without a graph
///   `work`      returns what the stage has done since the last call of `work`: the seconds `forward`, `backward`, `weights`
///               and `span` of work_times, and `most_held`, the most micro-batches that it held at a time
///   `threads`   returns how many threads libtorch uses inside one operation on the stage's node
std::shared_ptr<module> make_stage_module(std::shared_ptr<stage> of, stage_position position,
                                          schedule order = schedule::dataflow);

void add_stage_type(node& here);

/// The parameters and the buffers of a stage, by the names that the stage gives them. The model has no buffers so far.
named_tensors parameters_of(const stage& of);
named_tensors buffers_of(const stage& of);

}  // namespace troupe::apps::charlm
