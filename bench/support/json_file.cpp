// SPDX-License-Identifier: BSD-3-Clause
#include "json_file.hpp"

#include <fstream>
#include <stdexcept>
#include <system_error>

namespace troupe::bench {

nlohmann::json read_json(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in || std::filesystem::is_directory(file))
    throw std::runtime_error("cannot read '" + file.string() + "': expected a JSON file of a benchmark, but there is none");
  try {
    return nlohmann::json::parse(in);
  } catch (const nlohmann::json::exception& wrong) {
    throw std::runtime_error("'" + file.string() + "' is no JSON (" + wrong.what() + "); measure again, or remove the file");
  }
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::error_code failed;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), failed);
  if (failed) throw std::runtime_error("cannot make the folder '" + file.parent_path().string() + "': " + failed.message());
  const std::filesystem::path fresh = file.string() + ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << text << std::flush;
  out.close();
  if (out) std::filesystem::rename(fresh, file, failed);
  if (!out || failed)
    throw std::runtime_error("cannot write '" + file.string() + "'; is its folder writable, and is there room on the disk?");
}

}  // namespace troupe::bench
