// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/savina/programs_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <map>
#include <string>

namespace troupe::bench::savina {

/// The parameters of one program, by name.
class values {
 public:
  /// Throws std::runtime_error if there is no parameter of this name.
  std::int64_t operator[](const std::string& name) const;
  bool has(const std::string& name) const { return all_.contains(name); }
  void set(const std::string& name, std::int64_t value) { all_[name] = value; }
  /// "messages=40000", each with a space before.
  std::string arguments() const;

 private:
  std::map<std::string, std::int64_t> all_;
};

/// The parameters of all programs, by the name of the program. A line is `PROGRAM NAME=NUMBER...`; `quick` before it is for quick runs alone,
/// where the line replaces parameters of the lines before. Throws std::runtime_error with the number of the line that is malformed.
std::map<std::string, values> read_parameters(std::istream& from, bool quick);
std::map<std::string, values> read_parameters(const std::filesystem::path& file, bool quick);

}  // namespace troupe::bench::savina
