// SPDX-License-Identifier: BSD-3-Clause
#include "apps/proof_options.hpp"

#include <CLI/CLI.hpp>

#include <troupe/actors/certificates/kit.hpp>

namespace troupe::apps {

void proof_options::add_to(CLI::App& command) {
  auto* kit =
    command
      .add_option("--certificates", certificates,
                  "A kit that `troupe certs node` made; a node needs the one with its name. With a kit this program talks only "
                  "to nodes of its cluster, by TLS 1.3; without one, only to programs of the same user on this machine")
      ->type_name("FILE")
      ->default_str("")
      ->group("Security");
  command.add_option("--revoked", revoked, "The cluster's list of revoked certificates; read again when it changes")
    ->type_name("FILE")
    ->default_str("")
    ->needs(kit)
    ->group("Security");
  command
    .add_flag("--insecure", insecure,
              "Talk to everybody who reaches the port, in plain text; only for a network that is closed to others")
    ->excludes(kit)
    ->group("Security");
}

void proof_options::add_policy_to(CLI::App& command) {
  command
    .add_option(
      "--policy", policy,
      "A file that says what the nodes of each role may do with this node: see docs/operations.md. Without it every node "
      "of the cluster may do everything but send code and name paths")
    ->type_name("FILE")
    ->default_str("")
    ->needs(command.get_option("--certificates"))
    ->group("Security");
}

void proof_options::apply_to(settings& of_node) const {
  of_node.certificates = certificates;
  of_node.revoked = revoked;
  of_node.policy = policy;
  of_node.insecure = insecure;
}

std::string proof_options::name_or(const std::string& unless) const {
  return certificates.empty() ? unless : certificates::read_kit(certificates).identity.node;
}

}  // namespace troupe::apps
