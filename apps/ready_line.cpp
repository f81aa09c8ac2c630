// SPDX-License-Identifier: BSD-3-Clause
#include "ready_line.hpp"

#include <string_view>

#include <troupe/actors/settings.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::apps {

namespace {

constexpr std::string_view verb = " listens on ";

}  // namespace

std::string ready_line::address() const {
  bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string ready_line::text() const { return name + std::string(verb) + address(); }

std::optional<ready_line> ready_line::parse(const std::string& line) {
  auto at = line.find(verb);
  if (at == std::string::npos || !valid_node_name(line.substr(0, at))) return std::nullopt;
  try {
    auto [host, port] = parse_address(line.substr(at + verb.size()));
    return ready_line{line.substr(0, at), host, port};
  } catch (const error&) {
    return std::nullopt;
  }
}

}  // namespace troupe::apps
