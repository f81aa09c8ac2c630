// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace troupe::apps::test {

/// 24,000 characters that are easy to learn.
inline std::string some_text() {
  std::string text;
  for (int line = 0; text.size() < 24'000; ++line)
    text += "line " + std::to_string(line * 37 % 100) + " of a text that repeats itself\n";
  return text;
}

/// A folder with a text, and runs of `troupe train` on it that take a second or two.
struct small_run {
  temporary_folder folder;
  std::string data = folder.write("text.txt", some_text());
  std::string out = folder.path() / "run";

  std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"train", "--data",    data, "--out",   out, "--blocks",        "2", "--width", "16", "--heads",
                                 "2",     "--context", "16", "--batch", "8", "--micro-batches", "4"};
    all.insert(all.end(), more.begin(), more.end());
    for (const auto& [option, value] : {std::pair{"--single-process-seconds", "0"}, {"--sample", "20"}})
      if (std::find(all.begin(), all.end(), option) == all.end()) all.insert(all.end(), {option, value});
    return all;
  }
  std::filesystem::path file(const std::string& name) const { return std::filesystem::path(out) / name; }
  nlohmann::json summary() const { return nlohmann::json::parse(content_of(file("summary.json"))); }
};

/// Waits until the path exists or the program has ended. Returns whether the path exists.
inline bool appears(const std::filesystem::path& path, program& of) {
  while (!std::filesystem::exists(path))
    if (of.how_it_ends(std::chrono::milliseconds(5)) != "still runs") return std::filesystem::exists(path);
  return true;
}

/// Step, loss and gradient norm of each training step, as the file has them.
inline std::vector<std::string> losses(const std::filesystem::path& metrics) {
  std::vector<std::string> found;
  std::istringstream in(content_of(metrics));
  for (std::string line; std::getline(in, line);) {
    const auto fields = nlohmann::json::parse(line);
    if (fields.contains("loss"))
      found.push_back(fields["step"].dump() + " " + fields["loss"].dump() + " " + fields["gradient_norm"].dump());
  }
  return found;
}

}  // namespace troupe::apps::test
