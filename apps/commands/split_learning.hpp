// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp, tests/hosts/split_learning_test.cpp
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// Adds the command split-learning to `app`: two parties who do not trust each other train one model.
void add_split_learning_command(CLI::App& app);

}  // namespace troupe::apps
