// SPDX-License-Identifier: BSD-3-Clause
#include "report_page.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

#include "figure_text.hpp"
#include "page_style.hpp"
#include "plot_picture.hpp"
#include "row_texts.hpp"

namespace troupe::bench {

namespace {

/// The order of groups on the page; other groups follow by name.
constexpr std::array<const char*, 8> first_groups{"messages", "scheduling", "grain",    "shape",
                                                  "memory",   "lanes",      "training", "scale"};

constexpr const char* introduction =
  "Each row compares troupe with a <b>peer</b>, another system that does the same work in the same run, and with a "
  "<b>floor</b>, "
  "the least that this machine allows. The <b>ratio</b> is what the <b>bar</b> bounds: ≥ is a ratio that should be at least "
  "as large, ≤ one that should be at most as large. Small numbers below a figure are its spread: the middle half of the runs.";

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string id_of(const std::string& group) {
  std::string id = "group-";
  for (const char each : group) id += std::isalnum(static_cast<unsigned char>(each)) != 0 ? each : '-';
  return id;
}

std::vector<std::string> groups_of(const std::vector<plot>& plots) {
  std::set<std::string> all;
  for (const auto& each : plots) all.insert(each.group);
  std::vector<std::string> ordered;
  for (const auto* each : first_groups)
    if (all.erase(each) > 0) ordered.emplace_back(each);
  ordered.insert(ordered.end(), all.begin(), all.end());
  return ordered;
}

std::string facts(const results_of_folder& found) {
  if (!found.where)
    return "<p class=\"rough\">The machine was not recorded: there is no file machine.json beside the figures.</p>\n";
  std::string made = "<dl class=\"facts\">\n";
  for (const auto& [name, text] : facts_of(*found.where))
    made += "<div><dt>" + escaped(name) + "</dt><dd>" + escaped(text) + "</dd></div>\n";
  made += "</dl>\n";
  if (found.where->quick)
    made += "<p class=\"rough\">Figures of a quick run are rough: the runs are too few and too short to judge by them.</p>\n";
  return made;
}

std::string range_text(const value_range& range) {
  return range.known() ? "<small>" + number_text(range.low) + " – " + number_text(range.high) + "</small>" : "";
}

std::string figure_cell(const char* label, double value, const value_range& range) {
  return "<td class=\"n\" data-label=\"" + std::string(label) + "\">" + (value == 0 ? "–" : number_text(value)) +
         (value == 0 ? "" : range_text(range)) + "</td>";
}

std::string row_of_page(const row& each) {
  const auto text = text_of_row(each.name);
  const bool holds = each.holds();
  return std::string("<tr class=\"row") + (holds ? "" : " is-short") + "\"><td class=\"name\"><code>" + escaped(each.name) +
         "</code>" + (text.empty() ? "" : "<small>" + escaped(text) + "</small>") +
         (each.note.empty() ? "" : "<small>" + escaped(each.note) + "</small>") + "</td><td class=\"n unit\">" +
         escaped(unit_text(each.unit)) + "</td>" + figure_cell("floor", each.value.floor, each.spreads.floor) +
         figure_cell("peer", each.value.peer, each.spreads.peer) +
         figure_cell("troupe", each.value.troupe, each.spreads.troupe) + "<td class=\"n\" data-label=\"ratio\">" +
         number_text(each.ratio) + range_text(each.spreads.ratio) + "</td><td class=\"n\" data-label=\"bar\">" +
         (each.at_most ? "≤ " : "≥ ") + tick_text(each.bar, 0) + "</td><td class=\"" + (holds ? "ok" : "short") + "\">" +
         (holds ? "✓ ok" : "✗ short") + "</td></tr>\n";
}

std::string ratios(const std::vector<written_rows>& reports) {
  std::size_t count = 0;
  std::vector<std::string> short_rows;
  std::string rows;
  for (const auto& report : reports) {
    const auto peer = report.rows.empty() ? "" : report.rows.front().peer_name;
    rows += "<tr class=\"group\"><th colspan=\"8\">" + escaped(capital(report.name)) + "<span>" +
            (peer.empty() || peer == "peer" || peer == "beside" ? "" : "peer: " + escaped(peer) + "; ") + "written " +
            escaped(report.date) + "</span></th></tr>\n";
    for (const auto& each : report.rows) {
      ++count;
      if (!each.holds()) short_rows.push_back(each.name);
      rows += row_of_page(each);
    }
  }
  std::string summary =
    std::to_string(count - short_rows.size()) + " of " + std::to_string(count) + " figures reach their bars.";
  for (std::size_t i = 0; i < short_rows.size(); ++i)
    summary += (i == 0 ? " Short: <code>" : ", <code>") + escaped(short_rows[i]) + "</code>";
  return "<section><h2 id=\"ratios\">Ratios</h2>\n<p>" + summary + (short_rows.empty() ? "" : ".") + "</p>\n<p>" +
         introduction +
         "</p>\n<table class=\"ratios\"><thead><tr><th>row</th><th class=\"n\">unit</th><th class=\"n\">floor</th><th "
         "class=\"n\">peer</th><th class=\"n\">troupe</th><th class=\"n\">ratio</th><th "
         "class=\"n\">bar</th><th>reached</th></tr></thead>"
         "<tbody>\n" +
         rows + "</tbody></table></section>\n";
}

std::string table_of_points(const plot& from) {
  std::string made = "<details><summary>Figures of this plot</summary><table><thead><tr><th>curve</th><th class=\"n\">" +
                     escaped(from.x.label) + "</th><th class=\"n\">" + escaped(from.y.label) + "</th></tr></thead><tbody>\n";
  for (const auto& each : from.curves)
    for (const auto& one : each.points)
      made += "<tr><td>" + escaped(each.name) + "</td><td class=\"n\">" + escaped(value_text(one.x, from.x.unit)) +
              "</td><td class=\"n\">" + escaped(value_text(one.y, from.y.unit)) +
              (one.range.known() ? "<small>" + escaped(value_text(one.range.low, from.y.unit)) + " – " +
                                     escaped(value_text(one.range.high, from.y.unit)) + "</small>"
                                 : "") +
              "</td></tr>\n";
  return made + "</tbody></table></details>\n";
}

std::string figure_of(const plot& from) {
  return "<figure><h3>" + escaped(from.title) + "</h3>\n<p>" + escaped(from.how_to_read) + "</p>\n" + legend_of(from) +
         picture_of(from) + "\n" + table_of_points(from) + "</figure>\n";
}

}  // namespace

std::string page_of(const results_of_folder& found) {
  const auto groups = groups_of(found.plots);
  std::string body = "<header><h1>What troupe costs, beside its peers</h1>\n" + facts(found) + "</header>\n<nav>";
  if (!found.reports.empty()) body += "<a href=\"#ratios\">Ratios</a>";
  for (const auto& each : groups) body += "<a href=\"#" + id_of(each) + "\">" + escaped(capital(each)) + "</a>";
  body += "</nav>\n";
  if (!found.reports.empty()) body += ratios(found.reports);
  for (const auto& group : groups) {
    body += "<section><h2 id=\"" + id_of(group) + "\">" + escaped(capital(group)) + "</h2>\n<div class=\"plots\">\n";
    for (const auto& each : found.plots)
      if (each.group == group) body += figure_of(each);
    body += "</div></section>\n";
  }
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\"><title>troupe bench</title><style>" +
         std::string(page_style) + "</style></head><body>\n" + body +
         "<footer>A shaded band is the middle half of the runs. The pointer on a point shows its values. All runs shared one "
         "machine, so compare figures of one run only.</footer>\n</body></html>\n";
}

}  // namespace troupe::bench
