// SPDX-License-Identifier: BSD-3-Clause
#include "comparison.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace troupe::bench {

namespace {

namespace fs = std::filesystem;

double noise_of(const row& each) {
  if (each.spreads.ratio.known()) return each.spreads.ratio.relative_to(each.ratio);
  return each.spreads.peer.relative_to(each.value.peer) + each.spreads.troupe.relative_to(each.value.troupe);
}

double change_of(double before, double after) {
  if (before == after) return 0;
  return before == 0 ? std::numeric_limits<double>::infinity() : (after - before) / std::abs(before);
}

compared_row compared(const std::string& report, const row& before, const row& after, double least_noise) {
  compared_row made{report, before, after, change_of(before.ratio, after.ratio),
                    std::max(least_noise, noise_of(before) + noise_of(after))};
  if (std::abs(made.change) > made.noise) made.what = (made.change > 0) == after.at_most ? verdict::worse : verdict::better;
  return made;
}

using row_key = std::pair<std::string, std::string>;

std::map<row_key, row> by_name(const std::vector<written_rows>& reports) {
  std::map<row_key, row> all;
  for (const auto& report : reports)
    for (const auto& each : report.rows) all.emplace(row_key{report.name, each.name}, each);
  return all;
}

results_of_folder read_one(const fs::path& from, const std::string& name) {
  if (fs::is_directory(from)) return read_results(from);
  results_of_folder found;
  found.reports.push_back({name, "", read_rows(from)});
  return found;
}

std::string percent(double share) {
  if (std::isinf(share)) return "from 0";
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f%%", 100 * share);
  return text;
}

const char* word_for(verdict what) {
  switch (what) {
    case verdict::worse:
      return "worse";
    case verdict::better:
      return "better";
    case verdict::only_old:
      return "only in OLD";
    case verdict::only_new:
      return "only in NEW";
    case verdict::same:
      return "same";
  }
  return "";
}

std::string two_numbers(const compared_row& each, double before, double after) {
  char text[64];
  const bool no_before = each.what == verdict::only_new;
  const bool no_after = each.what == verdict::only_old;
  std::snprintf(text, sizeof text, no_before ? "-" : "%.4g", before);
  std::string made = text;
  std::snprintf(text, sizeof text, no_after ? "-" : "%.4g", after);
  return made + " -> " + text;
}

std::string table_line(int width, const std::string& name, const std::string& unit, const std::string& troupe,
                       const std::string& ratio, const std::string& change, const std::string& noise, const char* what) {
  char line[400];
  std::snprintf(line, sizeof line, "%-*s  %-12s %22s %20s %9s %8s  %s\n", width, name.c_str(), unit.c_str(), troupe.c_str(),
                ratio.c_str(), change.c_str(), noise.c_str(), what);
  return line;
}

}  // namespace

std::vector<compared_row> compare(const std::vector<written_rows>& before, const std::vector<written_rows>& after,
                                  double least_noise) {
  const auto old_rows = by_name(before);
  std::set<row_key> seen;
  std::vector<compared_row> all;
  for (const auto& report : after)
    for (const auto& each : report.rows) {
      const row_key key{report.name, each.name};
      seen.insert(key);
      const auto found = old_rows.find(key);
      if (found == old_rows.end())
        all.push_back({.report = report.name, .after = each, .what = verdict::only_new});
      else
        all.push_back(compared(report.name, found->second, each, least_noise));
    }
  for (const auto& report : before)
    for (const auto& each : report.rows)
      if (seen.count({report.name, each.name}) == 0)
        all.push_back({.report = report.name, .before = each, .what = verdict::only_old});
  return all;
}

both_runs read_both(const fs::path& before, const fs::path& after) {
  const bool files = !fs::is_directory(before) && !fs::is_directory(after);
  return {read_one(before, (files ? after : before).stem().string()), read_one(after, after.stem().string())};
}

std::string comparison_as_text(const std::vector<compared_row>& rows, bool all) {
  const auto name_of_row = [](const compared_row& each) {
    return each.report + "/" + (each.what == verdict::only_old ? each.before : each.after).name;
  };
  std::map<verdict, int> counts;
  std::vector<compared_row> shown;
  std::size_t width = 4;
  for (const auto& each : rows) {
    ++counts[each.what];
    if (!all && each.what == verdict::same) continue;
    shown.push_back(each);
    width = std::max(width, name_of_row(each).size());
  }
  const auto last = static_cast<int>(width);
  std::string text;
  if (!shown.empty()) text = table_line(last, "name", "unit", "troupe", "ratio", "change", "noise", "ratio got");
  for (const auto& each : shown) {
    const bool both = each.what != verdict::only_old && each.what != verdict::only_new;
    text += table_line(last, name_of_row(each), (each.what == verdict::only_old ? each.before : each.after).unit,
                       two_numbers(each, each.before.value.troupe, each.after.value.troupe),
                       two_numbers(each, each.before.ratio, each.after.ratio), both ? percent(each.change) : "",
                       both ? percent(each.noise).substr(1) : "", word_for(each.what));
  }
  char line[200];
  std::snprintf(line, sizeof line, "%d worse, %d better, %d the same within the noise; %d only in OLD, %d only in NEW\n",
                counts[verdict::worse], counts[verdict::better], counts[verdict::same], counts[verdict::only_old],
                counts[verdict::only_new]);
  return text + line;
}

std::string differences_of(const results_of_folder& before, const results_of_folder& after) {
  std::string text;
  if ((before.where && before.where->quick) || (after.where && after.where->quick))
    text += "note: figures of a quick run are rough\n";
  if (!before.where || !after.where) return text;
  const auto old_facts = facts_of(*before.where);
  const std::map<std::string, std::string> old_by_name(old_facts.begin(), old_facts.end());
  for (const auto& [name, fact] : facts_of(*after.where)) {
    if (name == "measured" || name == "load before") continue;
    const auto found = old_by_name.find(name);
    const std::string old = found == old_by_name.end() ? "not known" : found->second;
    if (old != fact) text += "note: " + name + " differs: OLD " + old + "; NEW " + fact + "\n";
  }
  return text;
}

}  // namespace troupe::bench
