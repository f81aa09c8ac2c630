// SPDX-License-Identifier: BSD-3-Clause
// Reads an input as a text that troupe reads: a cluster file, a policy, spans of a trace, a manifest, addresses, a path of another node, a
// device map, a kit, a list of revoked certificates.
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include <troupe/actors/certificates/kit.hpp>
#include <troupe/actors/certificates/refusal_reason.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/rights/policy.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/data_folder.hpp>
#include <troupe/actors/tracing/tracer.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/temporary_folder.hpp"
#include "apps/cluster_file.hpp"
#include "fuzzer.hpp"

namespace troupe::fuzz {

namespace {

void read_manifest_of(const std::string& text) {
  static const test::temporary_folder folder;
  const std::string path = folder / "";
  for (const auto& each : std::filesystem::directory_iterator(path)) std::filesystem::remove(each);
  std::ofstream(folder / std::string("checkpoint.json")) << text;
  objects::read_manifest(path);
}

void read_certificates(const std::string& text, bool is_kit) {
  static const test::own_cluster mine;
  static const auto own = certificates::read_kit(mine.kit("node"));
  const std::filesystem::path file(mine.file("input"));
  std::ofstream(file, std::ios::binary) << text;
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  if (is_kit)
    certificates::read_kit(file);
  else
    certificates::revocations(file, own.authority.get()).contains(own.certificate.get());
}

}  // namespace

void read_input(std::string_view bytes) {
  const auto kind = take_choice(bytes, 10);
  const std::string text(bytes);
  try {
    switch (kind) {
      case 0:
        apps::cluster_file::parse(text, "cluster.json");
        break;
      case 1:
        rights::policy::parse(text, "policy.json");
        break;
      case 2:
        tracing::unpack(text);
        break;
      case 3:
        read_manifest_of(text);
        break;
      case 4:
        parse_address(text);
        break;
      case 5:
        parse_page_address(text);
        break;
      case 6:
        support::names_in_path(text);
        break;
      case 9: {
        settings of_node;
        add_device_map(of_node, text);
        check(of_node);
        break;
      }
      default:
        read_certificates(text, kind == 7);
    }
  } catch (const std::exception& refused) {
    static_cast<void>(refused);
  }
}

}  // namespace troupe::fuzz
