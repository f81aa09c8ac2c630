// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "json_file.hpp"

namespace troupe::bench {

namespace {

using nlohmann::json;

template <class... Values>
std::string format(const char* how, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}

std::string figure(const json& row, const char* key) {
  const double value = row.at(key).is_null() ? 0 : row.at(key).get<double>();
  return value == 0 ? "-" : short_number(value);
}

json number_or_null(double value) { return value == 0 ? json() : json(value); }

json json_of(const row& from, const std::string& peer) {
  json made{{"name", from.name},
            {"unit", from.unit},
            {"peer", number_or_null(from.value.peer)},
            {"troupe", number_or_null(from.value.troupe)},
            {"floor", number_or_null(from.value.floor)},
            {"ratio", from.ratio},
            {from.should_be.is_upper ? "at_most" : "at_least", from.should_be.bound},
            {"ok", from.holds()},
            {"peer_name", peer},
            {"text", from.text}};
  const auto add = [&](const char* key, const value_range& spread) {
    if (spread.known()) made["spread"][key] = {spread.low, spread.high};
  };
  add("peer", from.spreads.peer);
  add("troupe", from.spreads.troupe);
  add("floor", from.spreads.floor);
  add("ratio", from.spreads.ratio);
  if (!from.note.empty()) made["note"] = from.note;
  return made;
}

json json_of(const std::vector<row>& rows, const std::string& peer) {
  auto list = json::array();
  for (const row& each : rows) list.push_back(json_of(each, peer));
  return list;
}

std::string table_of(const json& rows, const std::string& peer) {
  const auto text_in = [](const json& row, const char* key) { return row.at(key).get<std::string>(); };
  std::size_t width = 4;
  for (const auto& each : rows) width = std::max(width, text_in(each, "name").size());
  const int name_width = static_cast<int>(width);
  std::string text =
    format("%-*s  %-12s %9s %9s %9s %7s  %8s\n", name_width, "name", "unit", peer.c_str(), "troupe", "floor", "ratio", "bar");
  for (const auto& each : rows) {
    const bool is_upper = each.contains("at_most");
    const auto bound = each.at(is_upper ? "at_most" : "at_least").get<double>();
    const bool has_bar = is_upper || bound != 0;  // no ratio is below 0
    const auto bar =
      has_bar ? format("%2s %5.2f  %s", is_upper ? "<=" : ">=", bound, each.at("ok").get<bool>() ? "ok" : "short") : "       -";
    text +=
      format("%-*s  %-12s %9s %9s %9s %7.2f  %s", name_width, text_in(each, "name").c_str(), text_in(each, "unit").c_str(),
             figure(each, "peer").c_str(), figure(each, "troupe").c_str(), figure(each, "floor").c_str(),
             each.at("ratio").is_number() ? each.at("ratio").get<double>() : NAN, bar.c_str());
    text += each.contains("note") ? "  (" + text_in(each, "note") + ")\n" : "\n";
  }
  return text;
}

void write(const std::filesystem::path& folder, const std::string& name, const json& rows, const std::string& peer) {
  const auto table = table_of(rows, peer);
  write_text(folder / (name + ".json"), rows.dump(1) + "\n");
  write_text(folder / (name + ".txt"), table);
}

}  // namespace

std::string short_number(double value) { return format(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value); }

std::string table_of(const std::vector<row>& rows, const std::string& peer) { return table_of(json_of(rows, peer), peer); }

void write_report(const std::filesystem::path& folder, const std::string& name, const std::vector<row>& rows,
                  const std::string& peer) {
  write(folder, name, json_of(rows, peer), peer);
}

void add_to_report(const std::filesystem::path& folder, const std::string& name, const std::vector<row>& rows,
                   const std::string& peer) {
  const auto file = folder / (name + ".json");
  auto all = std::filesystem::exists(file) ? read_json(file) : json::array();
  try {
    for (const auto& each : json_of(rows, peer)) {
      const auto same =
        std::find_if(all.begin(), all.end(), [&](const json& other) { return other.at("name") == each["name"]; });
      if (same == all.end())
        all.push_back(each);
      else
        *same = each;
    }
    write(folder, name, all, peer);
  } catch (const json::exception& wrong) {
    throw std::runtime_error("'" + file.string() + "' is no report of a benchmark (" + wrong.what() + "); remove it");
  }
}

}  // namespace troupe::bench
