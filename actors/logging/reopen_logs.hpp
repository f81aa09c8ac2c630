// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/logging/node_log_test.cpp, tests/apps/node_command_test.cpp
#pragma once

namespace troupe::logging {

/// Opens the files of all logs of this process again, after another program has moved the files away (log rotation). Any thread
/// may call reopen_logs().
///   LR-1  the lines then go to new files at the same paths, and no line is lost. A log whose file can't be opened goes on in
///         the old file, with a line about the failure.
void reopen_logs() noexcept;

}  // namespace troupe::logging
