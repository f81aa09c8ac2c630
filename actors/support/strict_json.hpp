// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cluster_file_test.cpp, tests/actors/rights/policy_test.cpp
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

/// Reads files of settings in JSON. All functions throw std::runtime_error with the position in the file, what was expected and
/// what came.
namespace troupe::support {

[[noreturn]] void fail_at(const std::string& where, const std::string& what);

/// A value of the file as text, short enough for an error message.
std::string shown(const nlohmann::json& value);

/// The bytes of a file of at most 1 MiB. `what`: what the file should be, for errors.
std::string read_small_file(const std::string& path, const std::string& what);

/// Parses JSON. Refuses a field that is written twice (the JSON library would keep the last one), objects and lists nested
/// deeper than `most_nested`, and more than a million values. `origin`: the name of the file, for errors.
nlohmann::json parse_strictly(const std::string& text, const std::string& origin, std::size_t most_nested = 32);

/// Refuses a field that is not in `known`.
void check_fields(const nlohmann::json& object, const std::string& where, const std::vector<std::string>& known);

/// The list of texts in a field; empty if the field is not there.
std::vector<std::string> read_texts(const nlohmann::json& object, const std::string& where, const std::string& field);

}  // namespace troupe::support
