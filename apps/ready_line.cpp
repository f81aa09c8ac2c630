// SPDX-License-Identifier: BSD-3-Clause
#include "ready_line.hpp"

#include <charconv>
#include <string_view>

namespace troupe::apps {

std::optional<ready_line> ready_line::parse(const std::string& line) {
  constexpr std::string_view verb = " listens on ";
  auto at = line.find(verb);
  auto colon = line.rfind(':');
  if (at == std::string::npos || at == 0 || colon == std::string::npos || colon <= at + verb.size())
    return std::nullopt;
  ready_line ready;
  auto [end, problem] = std::from_chars(line.data() + colon + 1, line.data() + line.size(), ready.port);
  if (problem != std::errc() || end != line.data() + line.size() || ready.port == 0)
    return std::nullopt;
  ready.name = line.substr(0, at);
  ready.host = line.substr(at + verb.size(), colon - at - verb.size());
  return ready;
}

}  // namespace troupe::apps
