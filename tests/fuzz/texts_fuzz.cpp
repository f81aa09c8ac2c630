// SPDX-License-Identifier: BSD-3-Clause
// Reads an input as a text that troupe reads: a cluster file, a policy, spans of a trace, a manifest, addresses.
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/rights/policy.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/tracing/trace_span.hpp>

#include "actors/temporary_folder.hpp"
#include "apps/cluster_file.hpp"
#include "fuzzer.hpp"

namespace troupe::fuzz {

namespace {

void read_manifest_of(const std::string& text) {
  static const test::temporary_folder folder;
  const std::string place = folder / "";
  for (const auto& each : std::filesystem::directory_iterator(place)) std::filesystem::remove(each);
  std::ofstream(folder / std::string("checkpoint.json")) << text;
  objects::read_manifest(place);
}

}  // namespace

void read_input(std::string_view bytes) {
  const auto kind = take_choice(bytes, 6);
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
      default:
        parse_page_address(text);
    }
  } catch (const std::exception& refused) {
    static_cast<void>(refused);
  }
}

}  // namespace troupe::fuzz
