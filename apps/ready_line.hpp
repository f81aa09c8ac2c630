// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::apps {

/// The line that a node prints on stdout once it can be used: "stage1 listens on 127.0.0.1:40123". The process that started
/// the node reads the node's address from this line.
///   RL-1  parse() accepts a line with a token, "... (token 5f0c...)", only if it is given the same token. `troupe launch`
///         gives each node a token. So `troupe launch` takes no other line of a host, such as a banner, for a ready line.
struct ready_line {
  std::string name;
  std::string host;
  std::uint16_t port = 0;

  /// The address, in the form that --join accepts.
  std::string address() const;
  std::string text(const std::string& token = {}) const;
  /// Reads a line. Empty if the line is not a ready line with this token.
  static std::optional<ready_line> parse(const std::string& line, const std::string& token = {});
  /// Returns a random token that nobody can guess.
  static std::string new_token();
};

}  // namespace troupe::apps
