// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "apps/charlm/train_options.hpp"
#include "apps/signals.hpp"

namespace troupe::apps::charlm {

/// Trains: from reading the text to the summary. Returns 0, or 128 + the number of the signal that ended the training early. A
/// stage is away if it was lost, was stopped in order, froze, or has not started yet. It also counts as away while the cluster
/// keeps the driver's name for another process that can't be reached.
///   TN-1  an error leaves no started process, no half-written file, and the last checkpoint as it was.
///   TN-2  a run of --steps that was interrupted and continued gives the same bits as a run without interruption.
///   TN-3  a lost stage ends the run with an error that names the stage and what to do.
///   TN-4  if the gradients of the first steps differ from those of a single process, the run ends with an error that names
///         the parameter.
///   TN-5  every process has ended 2 s after a stop was asked for, whatever the run is doing. Work that takes longer is given
///         up, and the last checkpoint stays.
///   TN-6  an earlier run in the folder is set aside, or removed with --overwrite, only when the new run is about to take its
///         first step.
///   TN-7  a run with --retry waits for a stage that is away, from the first connection to the end. When all stages are up, the
///         run goes on from the last checkpoint (without one, from the start). The result has the same bits as that of a run
///         that lost no stage.
int train(const train_options& options, const stop_signal& stop);

}  // namespace troupe::apps::charlm
