// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/node_command_test.cpp, tests/apps/train_test.cpp
#pragma once

#include <string>
#include <vector>

#include <troupe/actors/settings.hpp>

namespace CLI {
class App;
}

namespace troupe::apps {

/// The options --log-level, --log-file and --log-format of commands that start nodes.
struct log_options {
  std::string level;
  std::string file;
  std::string format = "text";

  explicit log_options(severity level_unless_told) : level(to_text(level_unless_told)) {}

  /// Adds the options to a command. The object has to live as long as the command.
  void add_to(CLI::App& command);
  void apply_to(settings& of_node) const;
  /// The same options for another process.
  std::vector<std::string> arguments() const;
};

}  // namespace troupe::apps
