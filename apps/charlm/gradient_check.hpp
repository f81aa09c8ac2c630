// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/module.hpp>

#include "apps/charlm/corpus.hpp"
#include "apps/charlm/micro_batches.hpp"
#include "apps/charlm/model.hpp"

namespace troupe::apps::charlm {

/// Compares gradients with those of a single process.
///   GC-1  equal means the same bits, so that a NaN equals itself and 0 differs from -0.
///   GC-2  what differs is told by parameter, place and both values; so is a parameter that only one side has.

/// What differs first between what came and what was expected, in one line; empty if nothing does.
std::optional<std::string> first_difference(const named_tensors& came, const named_tensors& expected);

/// Writes parameters, one named list a stage, into the model's. Throws std::runtime_error for a name or shape that it does not
/// have.
void copy_parameters(const std::vector<named_tensors>& from, whole_model& to);

/// The gradients that libtorch's own engine computes for a step, in this process on one thread: those of `windows` cut as
/// `cuts` says, with one backward pass for each context's micro-batches; one named list a stage.
std::vector<named_tensors> single_process_gradients(whole_model& model, const batch& windows, const batch_cuts& cuts);

}  // namespace troupe::apps::charlm
