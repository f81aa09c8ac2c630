// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "apps/charlm/train_options.hpp"
#include "apps/signals.hpp"

namespace troupe::apps::charlm {

/// Runs a whole training, from reading the text to the summary. Returns 0, or 128 + the number of the signal that ended the
/// training early. A stage is away if it was lost, was stopped, froze, or has not started yet. A stage also counts as away
/// while the cluster reserves the driver's name for another process that can't be reached.
///   TN-1  after an error, no process that was started still runs, no file is half-written, and the last checkpoint is as it
///         was.
///   TN-2  a run with --steps that was interrupted and continued has the same bits as a run without interruption.
///   TN-3  without --retry, a lost stage ends the run with an error that names the stage and what to do.
///   TN-4  if the gradients of the first steps differ from those of a single process, the run ends with an error that names
///         the parameter.
///   TN-5  at most 2 s after a stop was asked for, every process of the run has ended. Work that takes longer is abandoned, and
///         the last checkpoint stays.
///   TN-6  an earlier run in the folder is set aside, or removed with --overwrite, only when the new run is about to take its
///         first step.
///   TN-7  with --retry, the run waits for a stage that is away, from the first connection to the end. When all stages are up,
///         the run goes on from the last checkpoint, or from the start if there is none. The result has the same bits as that
///         of a run that lost no stage.
int train(const train_options& options, const stop_signal& stop);

}  // namespace troupe::apps::charlm
