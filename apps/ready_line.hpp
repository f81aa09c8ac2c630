// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::apps {

/// What a node prints on stdout once it can be used: "stage1 listens on 127.0.0.1:40123". Who started it reads its address from there.
struct ready_line {
  std::string name;
  std::string host;
  std::uint16_t port = 0;

  std::string address() const { return host + ":" + std::to_string(port); }
  std::string text() const { return name + " listens on " + address(); }
  /// Empty when the line is none.
  static std::optional<ready_line> parse(const std::string& line);
};

}  // namespace troupe::apps
