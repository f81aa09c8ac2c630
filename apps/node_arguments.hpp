// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cli_test.cpp, tests/apps/node_command_test.cpp, tests/apps/train_test.cpp, tests/hosts/proving_test.cpp
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/actors/settings.hpp>

namespace CLI {
class App;
}

namespace troupe::apps {

using option_names = std::span<const std::string_view>;

/// How a node, or a command that asks a node, proves who it is; `--policy` is for commands that start nodes.
inline constexpr std::array<std::string_view, 4> proof_and_policy{"--certificates", "--revoked", "--insecure", "--policy"};
inline constexpr option_names proof(proof_and_policy.data(), 3);
inline constexpr std::array<std::string_view, 3> log_options{"--log-level", "--log-file", "--log-format"};

/// Adds options of a node (troupe/actors/node_options.hpp) to a command. `to`: where their values go, and what the help shows as
/// defaults; it has to live as long as the command. `group`: of the help; null: the group of the option.
void add_node_options(CLI::App& command, settings& to, option_names names, const char* group = nullptr);

/// The arguments of a command that make these settings what they are in `of`.
std::vector<std::string> node_arguments(const settings& of, option_names names);

/// The name of the node that the kit is for; the settings' own name without a kit. Throws troupe::error if the kit can't be read.
std::string name_in_kit(const settings& of);

}  // namespace troupe::apps
