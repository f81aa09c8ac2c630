// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp, tests/apps/cli_test.cpp
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// `troupe generate`: text from a checkpoint of `troupe train`, in this process alone.
void add_generate_command(CLI::App& app);

}  // namespace troupe::apps
