// SPDX-License-Identifier: BSD-3-Clause
#include "cluster_file.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include <troupe/actors/node_options.hpp>
#include <troupe/actors/support/strict_json.hpp>
#include <troupe/devices/device_map.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::apps {

namespace {

using nlohmann::json;
using support::check_fields;
using support::fail_at;
using support::parse_strictly;
using support::read_texts;
using support::shown;

constexpr std::size_t most_nodes = 256;
constexpr std::int64_t most_threads = 1024;

std::string read_text(const json& object, const std::string& where, const char* field, const char* otherwise) {
  auto found = object.find(field);
  if (found == object.end() && otherwise != nullptr) return otherwise;
  if (found == object.end()) fail_at(where, std::string("the field \"") + field + "\" is missing; expected a text in quotes");
  if (!found->is_string() || found->get<std::string>().empty())
    fail_at(where + "." + field, "expected a text in quotes, got " + shown(*found));
  return found->get<std::string>();
}

/// Reads a field with a text; empty if the field is missing. A text that begins with '-' is refused, because a program would
/// take the text for an option.
std::string read_argument(const json& object, const std::string& where, const char* field) {
  auto text = read_text(object, where, field, "");
  if (text.starts_with('-'))
    fail_at(where + "." + field, "expected a text that does not begin with '-', got " + shown(json(text)));
  return text;
}

/// Reads the field "device_maps", such as {"stage1": {"cuda:0": "cuda:1", "cpu": "cuda:0"}}.
void read_device_maps(const json& object, const std::string& where, settings& to) {
  constexpr const char* example = R"(expected an object such as {"stage1": {"cuda:0": "cuda:1", "cpu": "cuda:0"}}, got )";
  const auto found = object.find("device_maps");
  if (found == object.end()) return;
  const auto field = where + ".device_maps";
  if (!found->is_object()) fail_at(field, example + shown(*found));
  for (const auto& [peer, map] : found->items()) {
    if (!map.is_object() || map.empty()) fail_at(field + "." + peer, example + shown(*found));
    device_names names;
    for (const auto& [here, there] : map.items()) {
      if (!there.is_string())
        fail_at(field + "." + peer + "." + here, "expected the name of a device in quotes, got " + shown(there));
      names.emplace(here, there.get<std::string>());
    }
    try {
      add_device_map(to, peer + ":" + device_map::of(names).text());
    } catch (const error& why) {
      fail_at(field + "." + peer, why.what());
    }
  }
}

/// Whether an option of a node is a field with a single value. `--join` is not a field, because `troupe launch` decides which
/// node others join. read_device_maps() reads device maps.
bool is_field(const node_option& option) { return !option.may_repeat(); }

void read_option(const json& object, const std::string& where, const node_option& option, settings& to) {
  const auto found = object.find(option.field());
  if (found == object.end()) return;
  const auto fail = [&](const std::string& expected) {
    fail_at(where + "." + option.field(), "expected " + expected + ", got " + shown(*found));
  };
  if (const auto* flag = std::get_if<node_option::flag>(&option.kind)) {
    if (!found->is_boolean()) fail("true or false");
    to.*flag->where = found->get<bool>();
    return;
  }
  const bool is_number = std::holds_alternative<node_option::number>(option.kind);
  if (is_number ? !found->is_number_integer() : !found->is_string() || found->get<std::string>().empty())
    fail(is_number ? option.expected() : "a text in quotes");
  const auto text = is_number ? found->dump() : found->get<std::string>();
  if (!option.wrong(text).empty()) fail(option.expected());
  option.set(to, text);
}

cluster_node read_node(const json& object, const std::string& where, const settings& unless_told) {
  if (!object.is_object()) fail_at(where, "expected an object such as {\"name\": \"stage1\"}, got " + shown(object));
  std::vector<std::string> fields;
  for (const auto& option : node_options())
    if (is_field(option)) fields.push_back(option.field());
  fields.insert(fields.end(), {"threads", "ssh", "program", "folder", "options", "device_maps"});
  check_fields(object, where, fields);
  cluster_node node;
  static_cast<settings&>(node) = unless_told;
  check_node_name(read_text(object, where, "name", nullptr), where + ".name");
  node.ssh = read_argument(object, where, "ssh");
  if (node.ssh.find_first_of(" \t\n") != std::string::npos)
    fail_at(where + ".ssh", "expected a host, or user@host, without blanks, got " + shown(json(node.ssh)));
  if (!node.ssh.empty()) node.host = "0.0.0.0";
  node.program = read_argument(object, where, "program");
  node.folder = read_text(object, where, "folder", "");
  node.options = read_texts(object, where, "options");
  for (const auto& option : node_options())
    if (is_field(option)) read_option(object, where, option, node);
  read_device_maps(object, where, node);
  if (const auto found = object.find("threads"); found != object.end()) {
    if (!found->is_number_integer() || *found < 1 || *found > most_threads)
      fail_at(where + ".threads",
              "expected a whole number from 1 to " + std::to_string(most_threads) + ", got " + shown(*found));
    node.threads = found->get<std::size_t>();
  }
  return node;
}

void check_peers(const cluster_file& cluster) {
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i)
    for (const auto& [peer, names] : cluster.nodes[i].device_maps) {
      const auto is_peer = [&, &peer = peer](const cluster_node& each) { return each.name == peer; };
      if (std::none_of(cluster.nodes.begin(), cluster.nodes.end(), is_peer))
        fail_at(cluster.origin + ": nodes[" + std::to_string(i) + "].device_maps",
                "no node of this file has the name " + shown(json(peer)) +
                  R"(; a map to another node goes to "options": ["--device-map", )" +
                  shown(json(peer + ":" + device_map::of(names).text())) + "]");
    }
}

}  // namespace

std::string cluster_node::reached_at() const {
  if (!advertise.empty()) return advertise;
  return is_wildcard(host) ? ssh.substr(ssh.rfind('@') + 1) : host;  // rfind gives npos without '@', and npos + 1 is 0
}

cluster_file cluster_file::parse(const std::string& text, const std::string& origin, const settings& unless_told) {
  auto document = parse_strictly(text, origin);
  if (!document.is_object()) fail_at(origin, "expected an object such as {\"nodes\": [...]}, got " + shown(document));
  check_fields(document, origin, {"nodes"});
  auto list = document.find("nodes");
  if (list == document.end()) fail_at(origin, "the field \"nodes\" is missing; expected a list of nodes");
  if (!list->is_array() || list->empty() || list->size() > most_nodes)
    fail_at(origin + ": nodes", "expected a list of 1 to " + std::to_string(most_nodes) + " nodes, got " +
                                  (list->is_array() ? std::to_string(list->size()) : shown(*list)));
  cluster_file cluster;
  cluster.origin = origin;
  std::map<std::string, std::size_t> names;
  std::map<std::string, std::size_t> addresses;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto where = origin + ": nodes[" + std::to_string(i) + "]";
    auto node = read_node((*list)[i], where, unless_told);
    auto [same_name, new_name] = names.emplace(node.name, i);
    if (!new_name)
      fail_at(where + ".name", "\"" + node.name + "\" is the name of nodes[" + std::to_string(same_name->second) +
                                 "] already; expected one that no other node has");
    auto address = node.host + ":" + std::to_string(node.port) + (node.ssh.empty() ? "" : " on " + node.ssh);
    auto [same_address, new_address] = addresses.emplace(address, i);
    if (!new_address && node.port != 0)
      fail_at(where + ".port", address + " is the address of nodes[" + std::to_string(same_address->second) +
                                 "] already; expected another port, or 0 for any free one");
    cluster.nodes.push_back(std::move(node));
  }
  check_peers(cluster);
  return cluster;
}

cluster_file cluster_file::read(const std::string& path, const settings& unless_told) {
  return parse(support::read_small_file(path, "a cluster file such as {\"nodes\": [{\"name\": \"stage1\"}]}"), path,
               unless_told);
}

void check_node_name(const std::string& name, const std::string& field) {
  if (!valid_node_name(name) || name[0] == '-')
    fail_at(field, "expected 1 to 64 letters, digits, '-', '_' or '.', the first no '-' or '.', got " + shown(json(name)));
}

}  // namespace troupe::apps
