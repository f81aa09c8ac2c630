// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/logging/node_log_test.cpp, tests/apps/node_command_test.cpp
#pragma once

namespace troupe::logging {

/// Opens the files of all logs of this process again, as programs expect that have moved the files away. Any thread may call
/// it.
///   LR-1  the lines then go to new files at the same paths, and no line is lost. A log whose file can't be opened goes on in
///         the old file, and says so there.
void reopen_logs() noexcept;

}  // namespace troupe::logging
