// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <nlohmann/json.hpp>

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

row row_of(const nlohmann::json& from) {
  const bool at_most = from.contains("at_most");
  return {from.at("name"),
          from.at("unit"),
          {number_or_zero(from.at("peer")), number_or_zero(from.at("troupe")), number_or_zero(from.at("floor"))},
          from.at("ratio"),
          from.at(at_most ? "at_most" : "at_least"),
          at_most,
          from.value("note", "")};
}

void write(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path fresh = file.string() + ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << text << std::flush;
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(fresh, file, failed);
  if (!out || failed)
    throw std::runtime_error("cannot write '" + file.string() + "'; is its folder writable, and is there room on the disk?");
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
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw std::runtime_error("cannot make the folder '" + folder.string() + "': " + failed.message());
  auto list = nlohmann::json::array();
  for (const row& each : rows) {
    list.push_back({{"name", each.name},
                    {"unit", each.unit},
                    {"peer", number_or_null(each.value.peer)},
                    {"troupe", number_or_null(each.value.troupe)},
                    {"floor", number_or_null(each.value.floor)},
                    {"ratio", each.ratio},
                    {each.at_most ? "at_most" : "at_least", each.bar},
                    {"ok", each.holds()}});
    if (!each.note.empty()) list.back()["note"] = each.note;
  }
  write(folder / (name + ".json"), list.dump(1) + "\n");
  write(folder / (name + ".txt"), table_of(rows, peer));
}

std::vector<row> read_report(const std::filesystem::path& folder, const std::string& name) {
  const auto file = folder / (name + ".json");
  std::vector<row> rows;
  std::ifstream in(file);
  if (!in) return rows;
  try {
    for (const auto& each : nlohmann::json::parse(in)) rows.push_back(row_of(each));
  } catch (const nlohmann::json::exception& wrong) {
    throw std::runtime_error("'" + file.string() + "' is no report of a benchmark (" + wrong.what() + "); remove it");
  }
  return rows;
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
