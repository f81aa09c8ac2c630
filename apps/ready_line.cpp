// SPDX-License-Identifier: BSD-3-Clause
#include "ready_line.hpp"

#include <cstdio>
#include <random>
#include <string_view>

#include <troupe/actors/settings.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::apps {

namespace {

constexpr std::string_view verb = " listens on ";

std::string mark(const std::string& token) { return token.empty() ? "" : " (token " + token + ")"; }

}  // namespace

std::string ready_line::address() const {
  bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string ready_line::text(const std::string& token) const { return name + std::string(verb) + address() + mark(token); }

std::string ready_line::new_token() {
  std::random_device random;
  char digits[33];
  std::snprintf(digits, sizeof digits, "%08x%08x%08x%08x", random(), random(), random(), random());
  return digits;
}

std::optional<ready_line> ready_line::parse(const std::string& whole, const std::string& token) {
  if (!whole.ends_with(mark(token))) return std::nullopt;
  const auto line = whole.substr(0, whole.size() - mark(token).size());
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
