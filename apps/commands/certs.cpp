// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/certs_test.cpp
#include "apps/commands/commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/actors/certificates/authority.hpp>
#include <troupe/actors/support/texts.hpp>

#include "apps/command_line.hpp"
#include "apps/text_table.hpp"

namespace troupe::apps {

namespace {

using certificates::authority;
using certificates::issued;
using calendar = std::chrono::system_clock;

constexpr int most_days = 36'500;

struct certs_options {
  std::string folder = "troupe-authority";
  std::string cluster = "cluster";
  std::string name;
  std::string role = "member";
  std::vector<std::string> hosts;
  std::string out;
  std::string path;
  int days = authority::usual_life.count();
  int own_days = authority::own_life.count();
};

std::string left_in_words(std::chrono::seconds left) {
  using std::chrono::hours;
  constexpr hours day{24};
  const auto days = left / day;
  return days > 0 ? std::to_string(days) + (days == 1 ? " day left" : " days left")
                  : std::to_string(left / hours(1)) + " h left";
}

std::string state_in_words(const issued& one) {
  if (one.is_revoked) return "revoked";
  if (one.has_expired) return "expired";
  return one.has_begun ? "valid, " + left_in_words(one.left) : "not yet valid";
}

/// Returns the option that a next command needs to find the same authority; empty for the usual folder.
std::string authority_option(const certs_options& options) {
  return options.folder == certs_options().folder ? "" : " --authority " + options.folder;
}

void make_authority(const certs_options& options) {
  authority::create(options.folder, options.cluster, calendar::now(), authority::days(options.own_days));
  std::printf(
    "The authority of cluster '%s' is in %s/.\nWho has this folder lets nodes into the cluster: keep it away from their "
    "hosts.\nNext: troupe certs node NAME%s\n",
    options.cluster.c_str(), options.folder.c_str(), authority_option(options).c_str());
}

void write_kit_of(const certificates::kit& made, const std::string& file, bool replace) {
  certificates::write_kit(made, file, replace);
  std::printf("%s: node '%s' of cluster '%s', role %s, valid until %s\n", file.c_str(), made.identity.node.c_str(),
              made.identity.cluster.c_str(), made.identity.role.c_str(),
              certificates::until_of(made.certificate.get()).c_str());
}

/// Throws std::runtime_error if no file can be made in the folder of `out`, the value of --out. `file` names the kit in the
/// error. This is checked before a certificate is made, because the authority keeps a record of each certificate.
void expect_writable(const std::string& file, const std::string& out) {
  const auto folder = std::filesystem::path(out).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
    throw std::runtime_error("can't make " + file + ": " + std::generic_category().message(errno) +
                             "; no certificate was made");
}

void make_kit(const certs_options& options) {
  const authority own(options.folder);
  const auto file = options.out.empty() ? options.name + ".pem" : options.out;
  if (std::filesystem::exists(std::filesystem::symlink_status(file)))
    throw std::runtime_error(file + " is there already; replace it with `troupe certs renew " + options.name +
                             authority_option(options) + "`, or name another file with --out");
  expect_writable(file, options.out);
  for (const auto& each : own.all(calendar::now()))
    if (each.identity.node == options.name && !each.is_revoked && !each.has_expired)
      std::printf("Node '%s' has another certificate, of the role %s, which is valid until %s.\n", options.name.c_str(),
                  each.identity.role.c_str(), each.until().c_str());
  write_kit_of(own.issue(options.name, options.role, options.hosts, calendar::now(), authority::days(options.days)), file,
               false);
  std::printf(
    "Who has this file can be that node: copy it by a safe way (scp) to the node's host, and start the node there:\n"
    "  troupe node --name %s --host 0.0.0.0 --port 4001 --certificates %s --revoked revoked.pem\n"
    "The list revoked.pem is in %s; copy it to the node's host too, and again whenever it changes.\n",
    options.name.c_str(), std::filesystem::path(file).filename().c_str(), options.folder.c_str());
}

/// Throws std::runtime_error if the file is not a kit of this node, because the command would overwrite the file.
void expect_kit_of(const std::string& cluster, const std::string& node, const std::string& file) {
  try {
    const auto old = certificates::read_issued(file, calendar::now()).identity;
    if (old.cluster == cluster && old.node == node) return;
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next line says it
  }
  throw std::runtime_error(file + " is not a kit of node '" + node + "' of cluster '" + cluster +
                           "'; move it away, or name another file with --out");
}

void renew(const certs_options& options) {
  const authority own(options.folder);
  auto all = own.all(calendar::now());
  std::erase_if(all, [&](const issued& each) { return each.identity.node != options.name; });
  if (all.empty())
    throw std::runtime_error("node '" + options.name + "' has no certificate of " + options.folder +
                             "; make the first one with `troupe certs node " + options.name + authority_option(options) + "`");
  const auto file = options.out.empty() ? options.name + ".pem" : options.out;
  if (std::filesystem::exists(std::filesystem::symlink_status(file))) expect_kit_of(own.cluster(), options.name, file);
  write_kit_of(
    own.issue(options.name, all.back().identity.role, all.back().hosts, calendar::now(), authority::days(options.days)), file,
    true);
  std::printf("A node that runs reads its kit again when the file changes.\n");
  std::string until;  // the latest end of an earlier certificate that others still accept
  bool was_revoked = false;
  for (const auto& each : all) {
    if (each.is_revoked) was_revoked = true;
    if (!each.is_revoked && !each.has_expired) until = std::max(until, each.until());
  }
  if (!until.empty())
    std::printf(
      "The certificate before this one stays valid until %s. If its key was stolen: troupe certs revoke %s%s, and renew "
      "again.\n",
      until.c_str(), options.name.c_str(), authority_option(options).c_str());
  else if (was_revoked)
    std::printf("Node '%s' was revoked. With this kit the node is let in again.\n", options.name.c_str());
}

void revoke(const certs_options& options) {
  const authority own(options.folder);
  const auto count = own.revoke(options.name, calendar::now());
  if (count == 0)
    throw std::runtime_error("node '" + options.name + "' has no valid certificate of " + options.folder +
                             "; `troupe certs show` lists them all");
  std::printf(
    "Revoked %zu %s of node '%s'. Copy %s to the hosts of the nodes: they read it with --revoked, also while they run.\n",
    count, count == 1 ? "certificate" : "certificates", options.name.c_str(), own.revoked_file().c_str());
}

void show(const certs_options& options) {
  const auto path = options.path.empty() ? options.folder : options.path;
  std::vector<issued> all;
  if (std::filesystem::is_directory(path)) {
    const authority own(path);
    all = own.all(calendar::now());
    std::printf("cluster '%s', authority valid until %s, fingerprint %s\n", own.cluster().c_str(),
                certificates::until_of(own.certificate()).c_str(), certificates::fingerprint_of(own.certificate()).c_str());
  } else if (std::filesystem::exists(path)) {
    auto& one = all.emplace_back(certificates::read_issued(path, calendar::now()));
    if (std::filesystem::exists(options.folder + "/authority.pem"))
      for (const auto& each : authority(options.folder).all(calendar::now()))
        if (X509_cmp(each.certificate.get(), one.certificate.get()) == 0) one.is_revoked = each.is_revoked;
  } else {
    const bool is_node = std::filesystem::exists(path + ".pem");
    throw std::runtime_error(path + " is not there: expected " + (is_node ? "a kit, as " + path + ".pem" : "a kit") +
                             ", or the folder of an authority (`troupe certs init` makes one)");
  }
  std::vector<std::vector<std::string>> rows{
    {"node", "cluster", "role", "state", "valid from", "valid until", "hosts", "fingerprint"}};
  for (const auto& each : all)
    rows.push_back({each.identity.node, each.identity.cluster, each.identity.role, state_in_words(each), each.from(),
                    each.until(), each.hosts.empty() ? "-" : support::joined(each.hosts), each.fingerprint()});
  std::fputs(text_table(rows, rows.front().size()).c_str(), stdout);
}

void add_folder(CLI::App& to, certs_options& options) {
  to.add_option("--authority", options.folder, "Folder of the cluster's authority")->type_name("FOLDER");
}

void add_days(CLI::App& to, int& days, const char* what) { to.add_option("--days", days, what)->check(between(1, most_days)); }

CLI::App* add_certs_command(CLI::App& to, const char* name, const char* what, certs_options& options) {
  auto* command = to.add_subcommand(name, what);
  command->option_defaults()->always_capture_default();
  add_folder(*command, options);
  return command;
}

void add_name(CLI::App& to, certs_options& options) {
  to.add_option("NAME", options.name, "Name of the node")->type_name("")->required();
}

void add_out(CLI::App& to, certs_options& options) {
  to.add_option("--out", options.out, "File of the kit; without it NAME.pem")->type_name("FILE");
}

constexpr const char* certs_examples = R"(Example: a cluster of two nodes, on hosts h1 and h2
  troupe certs init --cluster mine
  troupe certs node a
  troupe certs node b
  scp a.pem troupe-authority/revoked.pem h1: && scp b.pem troupe-authority/revoked.pem h2:
  troupe node --name a --host 0.0.0.0 --port 4001 --join h1:4001 --join h2:4001 \
    --certificates a.pem --revoked revoked.pem         on h1
  troupe node --name b --host 0.0.0.0 --port 4001 --join h1:4001 --join h2:4001 \
    --certificates b.pem --revoked revoked.pem         on h2

Example: node b's key was stolen
  troupe certs revoke b
  scp troupe-authority/revoked.pem h1:                 node a reads the list again when it changes)";

}  // namespace

void add_certs_command(CLI::App& app) {
  auto options = std::make_shared<certs_options>();
  auto* certs =
    app.add_subcommand("certs", "Make, renew, revoke and show the certificates with which nodes prove who they are");
  certs->require_subcommand(1);
  certs->footer(certs_examples);

  auto* first = add_certs_command(
    *certs, "init", "Make the authority of a cluster: a folder that signs the certificates of its nodes", *options);
  first->add_option("--cluster", options->cluster, "Name of the cluster")->type_name("NAME");
  add_days(*first, options->own_days, "Days that the authority is valid");
  first->callback([options] { make_authority(*options); });

  auto* node =
    add_certs_command(*certs, "node", "Make a kit: one file with a node's key, its certificate and the authority's", *options);
  add_name(*node, *options);
  node->add_option("--role", options->role, "Role of the node, for policies")->type_name("ROLE");
  node
    ->add_option("--host", options->hosts,
                 "Name or address of the node's host, for other programs that look at the certificate; may repeat")
    ->allow_extra_args(false)
    ->type_name("HOST")
    ->default_str("");
  add_days(*node, options->days, "Days that the certificate is valid, at most until the authority expires");
  add_out(*node, *options);
  node->callback([options] { make_kit(*options); });

  auto* again = add_certs_command(*certs, "renew", "Make a new kit for a node: a new key, the same role and hosts", *options);
  add_name(*again, *options);
  add_days(*again, options->days, "Days that the certificate is valid, at most until the authority expires");
  add_out(*again, *options);
  again->callback([options] { renew(*options); });

  auto* end = add_certs_command(*certs, "revoke", "Revoke all certificates of a node", *options);
  add_name(*end, *options);
  end->callback([options] { revoke(*options); });

  auto* list = add_certs_command(*certs, "show", "Show the certificates that an authority made, or the one in a kit", *options);
  list->add_option("PATH", options->path, "A kit, or the folder of an authority; without it that of --authority")
    ->type_name("");
  list->callback([options] { show(*options); });
}

}  // namespace troupe::apps
