// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::apps {

/// What a node prints on stdout once it can be used: "stage1 listens on 127.0.0.1:40123". Who started it reads its address from
/// there.
struct ready_line {
  std::string name;
  std::string host;
  std::uint16_t port = 0;

  /// As --join takes it.
  std::string address() const;
  std::string text() const;
  /// Empty when the line is none.
  static std::optional<ready_line> parse(const std::string& line);
};

}  // namespace troupe::apps
