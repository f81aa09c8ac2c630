// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/advice.hpp"

#include <cctype>
#include <cstdlib>
#include <vector>

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
  if (!options.name.empty()) text += " --name " + shell_word(options.name);
  if (options.host != train_options{}.host) text += " --host " + shell_word(options.host);
  if (!options.advertise.empty()) text += " --advertise " + shell_word(options.advertise);
  if (!options.proof.certificates.empty()) text += " --certificates " + shell_word(options.proof.certificates);
  if (!options.proof.policy.empty()) text += " --policy " + shell_word(options.proof.policy);
  if (!options.proof.revoked.empty()) text += " --revoked " + shell_word(options.proof.revoked);
  if (options.proof.insecure) text += " --insecure";
  if (!options.node_checkpoints.empty()) text += " --node-checkpoints " + shell_word(options.node_checkpoints);
  if (options.heartbeat_ms != train_options{}.heartbeat_ms) text += " --heartbeat-ms " + std::to_string(options.heartbeat_ms);
  if (options.retry > 0) text += " --retry " + std::to_string(options.retry);
  if (options.verify_steps == 0)  // stages that compute with several threads need this option
    text += " --verify-steps 0";
  return text;
}

std::string generate_command(const train_options& options) {
  return program_as_started() + " generate --out " + shell_word(options.out);
}

}  // namespace troupe::apps::charlm
