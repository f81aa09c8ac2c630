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
///   GC-1  equal means equal bits: a NaN equals itself, and 0 differs from -0.
///   GC-2  a difference is reported with parameter, position and both values. A parameter that only one side has is reported
///         too.

/// The first difference between `came` and `expected`, in one line; empty if there is none.
std::optional<std::string> first_difference(const named_tensors& came, const named_tensors& expected);

/// Copies parameters, one named list per stage, into the model. Throws std::runtime_error for a name or shape that the model
/// does not have.
void copy_parameters(const std::vector<named_tensors>& from, whole_model& to);

/// The gradients that libtorch's own engine computes for a step, in this process on one thread; one named list per stage.
/// `windows` are cut as `cuts` says, with one backward pass for the micro-batches of each context.
std::vector<named_tensors> single_process_gradients(whole_model& model, const batch& windows, const batch_cuts& cuts);

}  // namespace troupe::apps::charlm
