// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "json_file.hpp"

namespace troupe::bench {

namespace {

template <class... Values>
std::string format(const char* how, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}

std::string number(double value) {
  return value == 0 ? "-" : format(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
}

nlohmann::json number_or_null(double value) { return value == 0 ? nlohmann::json() : nlohmann::json(value); }
double number_or_zero(const nlohmann::json& value) { return value.is_null() ? 0 : value.get<double>(); }

nlohmann::json pair_of(const value_range& from) { return nlohmann::json::array({from.low, from.high}); }
value_range spread_from(const nlohmann::json& all, const char* key) {
  const auto found = all.find(key);
  return found == all.end() ? value_range{} : value_range{found->at(0), found->at(1)};
}

nlohmann::json json_of(const row_spreads& from) {
  auto all = nlohmann::json::object();
  if (from.peer.known()) all["peer"] = pair_of(from.peer);
  if (from.troupe.known()) all["troupe"] = pair_of(from.troupe);
  if (from.floor.known()) all["floor"] = pair_of(from.floor);
  if (from.ratio.known()) all["ratio"] = pair_of(from.ratio);
  return all;
}

row_spreads spreads_of(const nlohmann::json& from) {
  const auto all = from.value("spread", nlohmann::json::object());
  return {spread_from(all, "peer"), spread_from(all, "troupe"), spread_from(all, "floor"), spread_from(all, "ratio")};
}

row row_of(const nlohmann::json& from) {
  const bool at_most = from.contains("at_most");
  return {from.at("name"),
          from.at("unit"),
          {number_or_zero(from.at("peer")), number_or_zero(from.at("troupe")), number_or_zero(from.at("floor"))},
          number_or_zero(from.at("ratio")),
          from.at(at_most ? "at_most" : "at_least"),
          at_most,
          from.value("note", ""),
          spreads_of(from),
          from.value("peer_name", "")};
}

}  // namespace

std::string table_of(const std::vector<row>& rows, const std::string& peer) {
  std::size_t width = 4;
  for (const row& each : rows) width = std::max(width, each.name.size());
  const int name_width = static_cast<int>(width);
  std::string text =
    format("%-*s  %-12s %9s %9s %9s %7s  %8s\n", name_width, "name", "unit", peer.c_str(), "troupe", "floor", "ratio", "bar");
  for (const row& each : rows) {
    text += format("%-*s  %-12s %9s %9s %9s %7.2f  %2s %5.2f  %s", name_width, each.name.c_str(), each.unit.c_str(),
                   number(each.value.peer).c_str(), number(each.value.troupe).c_str(), number(each.value.floor).c_str(),
                   each.ratio, each.at_most ? "<=" : ">=", each.bar, each.holds() ? "ok" : "short");
    text += each.note.empty() ? "\n" : "  (" + each.note + ")\n";
  }
  return text;
}

void write_report(const std::filesystem::path& folder, const std::string& name, const std::vector<row>& rows,
                  const std::string& peer) {
  auto list = nlohmann::json::array();
  for (const row& each : rows) {
    list.push_back({{"name", each.name},
                    {"unit", each.unit},
                    {"peer", number_or_null(each.value.peer)},
                    {"troupe", number_or_null(each.value.troupe)},
                    {"floor", number_or_null(each.value.floor)},
                    {"ratio", each.ratio},
                    {each.at_most ? "at_most" : "at_least", each.bar},
                    {"ok", each.holds()},
                    {"peer_name", peer}});
    if (const auto spreads = json_of(each.spreads); !spreads.empty()) list.back()["spread"] = spreads;
    if (!each.note.empty()) list.back()["note"] = each.note;
  }
  write_text(folder / (name + ".json"), list.dump(1) + "\n");
  write_text(folder / (name + ".txt"), table_of(rows, peer));
}

std::vector<row> read_rows(const std::filesystem::path& file) {
  std::vector<row> rows;
  const auto list = read_json(file);
  try {
    if (!list.is_array()) throw std::runtime_error("expected a list of rows");
    for (const auto& each : list) rows.push_back(row_of(each));
  } catch (const std::exception& wrong) {
    throw std::runtime_error("'" + file.string() + "' is no report of a benchmark (" + wrong.what() + "); remove it");
  }
  return rows;
}

std::vector<row> read_report(const std::filesystem::path& folder, const std::string& name) {
  const auto file = folder / (name + ".json");
  return std::filesystem::exists(file) ? read_rows(file) : std::vector<row>{};
}

void add_to_report(const std::filesystem::path& folder, const std::string& name, const std::vector<row>& rows,
                   const std::string& peer) {
  auto all = read_report(folder, name);
  for (const row& each : rows) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const row& other) { return other.name == each.name; });
    if (same == all.end())
      all.push_back(each);
    else
      *same = each;
  }
  write_report(folder, name, all, peer);
}

}  // namespace troupe::bench
