// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/advice.hpp"

#include <cstdlib>
#include <string_view>
#include <vector>

#include <troupe/actors/support/texts.hpp>

#include "apps/command_line.hpp"
#include "apps/node_starter.hpp"

namespace troupe::apps::charlm {

namespace {

// Returns the text with which a person has started the program, quoted for a shell. In a bundle, a person starts the script
// bin/troupe, and the script starts the program. The script passes the text that the person typed in TROUPE_STARTED_AS.
std::string program_as_started() {
  const char* const typed = std::getenv("TROUPE_STARTED_AS");  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  return shell_quoted(typed == nullptr ? program_invocation_name : typed);
}

constexpr std::string_view to_repeat[] = {"--name",   "--host",    "--advertise", "--certificates",
                                          "--policy", "--revoked", "--insecure",  "--heartbeat-ms"};

}  // namespace

std::string continue_command(const train_options& options) {
  auto text = program_as_started() + " train --resume --out " + shell_quoted(options.out);
  if (!options.cluster.empty()) text += " --cluster " + shell_quoted(options.cluster);
  if (!options.join.empty()) text += " --join " + shell_quoted(options.join);
  if (!options.nodes.empty()) text += " --nodes " + shell_quoted(support::joined(options.nodes, ","));
  for (const auto name : to_repeat)
    if (const auto words = node_arguments(options.driver, {&name, 1});
        words != node_arguments(train_options{}.driver, {&name, 1}))
      for (const auto& word : words) text += " " + shell_quoted(word);
  if (!options.node_checkpoints.empty()) text += " --node-checkpoints " + shell_quoted(options.node_checkpoints);
  if (options.retry > 0) text += " --retry " + std::to_string(options.retry);
  if (options.verify_steps == 0)  // stages that compute with several threads need this option
    text += " --verify-steps 0";
  return text;
}

std::string generate_command(const train_options& options) {
  return program_as_started() + " generate --out " + shell_quoted(options.out);
}

}  // namespace troupe::apps::charlm
