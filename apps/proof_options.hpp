// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/hosts/proving_test.cpp, tests/apps/cli_test.cpp
#pragma once

#include <string>
#include <vector>

#include <troupe/actors/settings.hpp>

namespace CLI {
class App;
}

namespace troupe::apps {

/// The options --certificates, --revoked, --policy and --insecure: how a node, or a command that asks a node, proves who it is.
struct proof_options {
  std::string certificates;
  std::string revoked;
  std::string policy;
  bool insecure = false;

  /// Adds the options to a command. The object has to live as long as the command.
  void add_to(CLI::App& command);
  /// Adds --policy to a command that starts a node. Pre: add_to(command).
  void add_policy_to(CLI::App& command);
  void apply_to(settings& of_node) const;
  /// The name of the node that the kit is for; `unless` without a kit. Throws troupe::error if the kit can't be read.
  std::string name_or(const std::string& unless) const;
};

}  // namespace troupe::apps
