// SPDX-License-Identifier: BSD-3-Clause
#include "curves.hpp"

#include <algorithm>
#include <array>

#include "json_file.hpp"

namespace troupe::bench {

namespace {

nlohmann::json json_of(const point& from) {
  auto made = nlohmann::json::array({from.x, from.y});
  if (from.range.known()) made.insert(made.end(), {from.range.low, from.range.high});
  return made;
}

nlohmann::json json_of(const curve& from) {
  constexpr std::array names{"floor", "peer", "troupe", "variant"};
  auto points = nlohmann::json::array();
  for (const auto& each : from.points) points.push_back(json_of(each));
  return {{"name", from.name}, {"role", names.at(static_cast<std::size_t>(from.as))}, {"points", points}};
}

nlohmann::json json_of(const plot_axis& from) { return {{"label", from.label}, {"unit", from.unit}, {"log", from.log}}; }

nlohmann::json json_of(const plot& from) {
  nlohmann::json made{{"group", from.group},
                      {"name", from.name},
                      {"title", from.title},
                      {"how_to_read", from.how_to_read},
                      {"x", json_of(from.x)},
                      {"y", json_of(from.y)},
                      {"series", nlohmann::json::array()}};
  for (const auto& each : from.curves) made["series"].push_back(json_of(each));
  if (from.default_x) made["default_x"] = *from.default_x;
  if (!from.default_name.empty()) made["default_name"] = from.default_name;
  return made;
}

}  // namespace

point point_of(double x, const std::vector<double>& runs) {
  const auto median = percentile(runs, 0.5);
  return {x, median, spread_of(runs, median)};
}

std::string words_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

void write_curves(const std::filesystem::path& folder, const std::string& name, const std::vector<plot>& plots) {
  auto list = nlohmann::json::array();
  for (const auto& each : plots) list.push_back(json_of(each));
  write_text(folder / (name + ".curves.json"), list.dump(1) + "\n");
}

}  // namespace troupe::bench
