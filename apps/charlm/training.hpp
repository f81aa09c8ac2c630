// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "apps/charlm/train_options.hpp"
#include "apps/signals.hpp"

namespace troupe::apps::charlm {

/// Trains, from the text to the summary. Returns 0, or 128 and the number of the signal that ended it early.
///   TN-1  every error leaves no process of ours behind, no half-written file, and the last checkpoint as it was.
///   TN-2  a run of --steps that was interrupted and continued gives the same bits as one that was not.
///   TN-3  a stage that is lost ends the run with an error that names it and what to do.
///   TN-4  gradients of the first steps that differ from a single process's end the run with an error that names the parameter.
///   TN-5  every process has ended 2 s after a stop was asked for, whatever the run is busy with: work that takes longer is
///         left, and the last checkpoint kept.
///   TN-6  a run that was in the folder is set aside only once a new one is about to take its first step.
int train(const train_options& options, const stop_signal& stop);

}  // namespace troupe::apps::charlm
