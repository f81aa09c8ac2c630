// SPDX-License-Identifier: BSD-3-Clause
#include "curves.hpp"

#include <array>
#include <exception>
#include <stdexcept>
#include <utility>

#include "json_file.hpp"

namespace troupe::bench {

namespace {

constexpr std::array<std::pair<role, const char*>, 4> names_of_roles{
  {{role::floor, "floor"}, {role::peer, "peer"}, {role::troupe, "troupe"}, {role::variant, "variant"}}};

const char* name_of_role(role part) {
  for (const auto& [known, name] : names_of_roles)
    if (known == part) return name;
  throw std::logic_error("a role without a name");
}

role role_named(const std::string& name) {
  for (const auto& [part, known] : names_of_roles)
    if (name == known) return part;
  throw std::runtime_error("the role is '" + name + "', expected floor, peer, troupe or variant");
}

nlohmann::json json_of_point(const point& from) {
  auto made = nlohmann::json::array({from.x, from.y});
  if (from.range.known()) made.insert(made.end(), {from.range.low, from.range.high});
  return made;
}

point point_of(const nlohmann::json& from) {
  if (from.size() != 2 && from.size() != 4)
    throw std::runtime_error("a point is " + from.dump() + ", expected [x, y] or [x, y, low, high]");
  point made{from.at(0), from.at(1)};
  if (from.size() == 4) made.range = {from.at(2), from.at(3)};
  return made;
}

nlohmann::json json_of_axis(const plot_axis& from) { return {{"label", from.label}, {"unit", from.unit}, {"log", from.log}}; }
plot_axis axis_of(const nlohmann::json& from) { return {from.at("label"), from.at("unit"), from.value("log", false)}; }

nlohmann::json json_of_plot(const plot& from) {
  nlohmann::json made{{"group", from.group},
                      {"name", from.name},
                      {"title", from.title},
                      {"how_to_read", from.how_to_read},
                      {"x", json_of_axis(from.x)},
                      {"y", json_of_axis(from.y)},
                      {"series", nlohmann::json::array()}};
  for (const auto& each : from.curves) {
    auto points = nlohmann::json::array();
    for (const auto& one : each.points) points.push_back(json_of_point(one));
    made["series"].push_back({{"name", each.name}, {"role", name_of_role(each.part)}, {"points", points}});
  }
  if (from.default_x) made["default_x"] = *from.default_x;
  if (!from.default_name.empty()) made["default_name"] = from.default_name;
  return made;
}

void check(const plot& made) {
  std::size_t points = 0;
  for (const auto& each : made.curves)
    for (const auto& one : each.points) {
      ++points;
      if ((made.x.log && one.x < 0) || (made.y.log && one.y < 0))
        throw std::runtime_error("'" + each.name + "' has a value below 0 on a logarithmic axis");
    }
  if (points == 0) throw std::runtime_error("there is no point in it");
}

plot plot_of(const nlohmann::json& from) {
  plot made{.group = from.at("group"),
            .name = from.at("name"),
            .title = from.at("title"),
            .how_to_read = from.at("how_to_read"),
            .x = axis_of(from.at("x")),
            .y = axis_of(from.at("y"))};
  for (const auto& each : from.at("series")) {
    made.curves.push_back({each.at("name"), role_named(each.at("role"))});
    for (const auto& one : each.at("points")) made.curves.back().points.push_back(point_of(one));
  }
  if (const auto found = from.find("default_x"); found != from.end() && !found->is_null())
    made.default_x = found->get<double>();
  made.default_name = from.value("default_name", "");
  check(made);
  return made;
}

}  // namespace

void write_curves(const std::filesystem::path& folder, const std::string& name, const std::vector<plot>& plots) {
  auto list = nlohmann::json::array();
  for (const auto& each : plots) list.push_back(json_of_plot(each));
  write_text(folder / (name + ".curves.json"), list.dump(1) + "\n");
}

std::vector<plot> read_curves(const std::filesystem::path& file) {
  const auto list = read_json(file);
  std::vector<plot> plots;
  std::string which = "no list";
  try {
    if (!list.is_array()) throw std::runtime_error("expected a list of plots");
    for (const auto& each : list) {
      which = "plot " + std::to_string(plots.size()) + (each.contains("name") ? " " + each["name"].dump() : "");
      plots.push_back(plot_of(each));
    }
  } catch (const std::exception& wrong) {
    throw std::runtime_error("'" + file.string() + "' has no curves of a benchmark (" + which + ": " + wrong.what() +
                             "); measure again, or remove the file");
  }
  return plots;
}

}  // namespace troupe::bench
