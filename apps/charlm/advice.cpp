// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/advice.hpp"

#include <cctype>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "apps/node_arguments.hpp"

namespace troupe::apps::charlm {

namespace {

// The bundle's bin/troupe says what a person has typed: the program itself does not start without it.
std::string program_as_started() {
  const char* const typed = std::getenv("TROUPE_STARTED_AS");  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  return shell_word(typed == nullptr ? program_invocation_name : typed);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

constexpr std::string_view to_repeat[] = {"--name",   "--host",    "--advertise", "--certificates",
                                          "--policy", "--revoked", "--insecure",  "--heartbeat-ms"};

}  // namespace

std::string shell_word(const std::string& word) {
  const std::string harmless = "_-./:=,+@%";
  bool plain = !word.empty();
  std::string quoted = "'";
  for (const auto c : word) {
    const auto letter = static_cast<unsigned char>(c);
    plain = plain && letter < 0x80 && (std::isalnum(letter) != 0 || harmless.find(c) != std::string::npos);
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return plain ? word : quoted + "'";
}

std::string continue_command(const train_options& options) {
  auto text = program_as_started() + " train --resume --out " + shell_word(options.out);
  if (!options.cluster.empty()) text += " --cluster " + shell_word(options.cluster);
  if (!options.join.empty()) text += " --join " + shell_word(options.join);
  if (!options.nodes.empty()) text += " --nodes " + shell_word(joined(options.nodes));
  for (const auto name : to_repeat)
    if (const auto words = node_arguments(options.driver, {&name, 1});
        words != node_arguments(train_options{}.driver, {&name, 1}))
      for (const auto& word : words) text += " " + shell_word(word);
  if (!options.node_checkpoints.empty()) text += " --node-checkpoints " + shell_word(options.node_checkpoints);
  if (options.retry > 0) text += " --retry " + std::to_string(options.retry);
  if (options.verify_steps == 0)  // stages that compute with several threads need this option
    text += " --verify-steps 0";
  return text;
}

std::string generate_command(const train_options& options) {
  return program_as_started() + " generate --out " + shell_word(options.out);
}

}  // namespace troupe::apps::charlm
