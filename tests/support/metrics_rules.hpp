// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace troupe::test {

/// What Prometheus's text format and its naming conventions forbid of this page, one line each. Empty if the page is right.
inline std::vector<std::string> problems_of_metrics(const std::string& page) {
  static const std::regex sample(
    R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\["\\n])*"(,(?!\})|(?=\})))+\})? (-?[0-9.]+(e[+-]?[0-9]+)?|NaN|[+-]Inf))re");
  static const std::regex comment(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))");
  std::vector<std::string> problems;
  std::map<std::string, std::string> types;
  std::set<std::string> helped;
  std::set<std::string> series;
  std::string last_type;
  if (page.empty() || page.back() != '\n') problems.push_back("the page does not end with a line end");
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    const auto complain = [&](const std::string& what) { problems.push_back(what + ": " + line); };
    if (std::regex_match(line, parts, comment)) {
      const std::string name = parts[2];
      if (parts[1] == "HELP") {
        if (!helped.insert(name).second) complain("a second HELP");
        continue;
      }
      last_type = name;
      if (!types.emplace(name, parts[3]).second) complain("a second TYPE");
      if (!helped.contains(name)) complain("a TYPE without HELP before it");
      const bool is_total = name.ends_with("_total");
      if (parts[3] == "counter" && !is_total) complain("a counter whose name does not end in _total");
      if (parts[3] == "gauge" && is_total) complain("a gauge whose name ends in _total");
      if (parts[3] != "counter" && parts[3] != "gauge") complain("an unknown type");
      for (const auto* unit : {"_ms", "_milliseconds", "_kb", "_mb", "_ns"})
        if (name.ends_with(unit)) complain("a unit that is no base unit");
    } else if (std::regex_match(line, parts, sample)) {
      if (parts[1] != last_type) complain("a sample that does not follow the TYPE of its metric");
      if (!series.insert(parts[1].str() + parts[2].str()).second) complain("a second sample of the same labels");
    } else {
      complain("no sample and no comment");
    }
  }
  return problems;
}

}  // namespace troupe::test
