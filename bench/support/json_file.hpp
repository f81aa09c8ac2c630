// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/support/report_test.cpp
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace troupe::bench {

/// The content of a JSON file. Throws std::runtime_error with the file's name if the file is missing or is no JSON.
nlohmann::json read_json(const std::filesystem::path& file);

/// Writes a text file, and puts it in place by a rename. Makes its folder. Throws std::runtime_error with the file's name on failure.
void write_text(const std::filesystem::path& file, const std::string& text);

}  // namespace troupe::bench
