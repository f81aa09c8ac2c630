// SPDX-License-Identifier: BSD-3-Clause
#include "parameters.hpp"

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace troupe::bench::savina {

std::int64_t values::operator[](const std::string& name) const {
  const auto found = all_.find(name);
  if (found == all_.end()) throw std::runtime_error("the program has no parameter '" + name + "'; there are:" + arguments());
  return found->second;
}

std::string values::arguments() const {
  std::string text;
  for (const auto& [name, value] : all_) text += " " + name + "=" + std::to_string(value);
  return text;
}

std::map<std::string, values> read_parameters(std::istream& from, bool quick) {
  std::map<std::string, values> all;
  std::string line;
  for (int number = 1; std::getline(from, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string program;
    std::string word;
    if (!(words >> program)) continue;
    const bool only_quick = program == "quick";
    if (only_quick) words >> program;
    while (words >> word) {
      const auto equals = std::min(word.find('='), word.size() - 1);
      const char* const end = word.data() + word.size();
      std::int64_t value = 0;
      const auto read = std::from_chars(word.data() + equals + 1, end, value);
      if (equals == 0 || read.ec != std::errc() || read.ptr != end || value <= 0)
        throw std::runtime_error("line " + std::to_string(number) + " has '" + word + "', expected NAME=NUMBER above 0");
      if (quick || !only_quick) all[program].set(word.substr(0, equals), value);
    }
  }
  return all;
}

std::map<std::string, values> read_parameters(const std::filesystem::path& file, bool quick) {
  std::ifstream from(file);
  if (!from) throw std::runtime_error("can't read '" + file.string() + "'");
  try {
    return read_parameters(from, quick);
  } catch (const std::runtime_error& wrong) {
    throw std::runtime_error(file.string() + ": " + wrong.what());
  }
}

}  // namespace troupe::bench::savina
