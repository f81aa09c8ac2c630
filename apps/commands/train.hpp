// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp, tests/apps/cli_test.cpp
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// `troupe train`: trains a character-level language model whose layers are spread over node processes.
///   TC-1  status 0: trained; 1: failed; 2: wrong arguments; 128 + a signal's number: stopped by the signal, with a
///         checkpoint.
void add_train_command(CLI::App& app);

}  // namespace troupe::apps
