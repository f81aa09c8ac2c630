// SPDX-License-Identifier: BSD-3-Clause
#include "plot_picture.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "axis_scale.hpp"
#include "figure_text.hpp"

namespace troupe::bench {

namespace {

constexpr double width = 360;
constexpr double height = 276;
constexpr double left = 54;
constexpr double right = 346;
constexpr double top_without_default = 24;  // above: the title of the y axis
constexpr double top_with_default = 40;     // above: the title of the y axis, and below it the name of the default
constexpr double bottom = 234;
constexpr double letter = 6.4;       // mean width of a letter of 12 px
constexpr double bold_letter = 7.8;  // of a bold one
constexpr int colours_of_variants = 5;
constexpr std::size_t most_marked_points = 30;

std::string px(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

/// The width of UTF-8, estimated by its letters.
double width_of(const std::string& text, double of_letter = letter) {
  return of_letter *
         static_cast<double>(std::count_if(text.begin(), text.end(), [](char each) { return (each & 0xC0) != 0x80; }));
}

std::string element(const std::string& name, const std::string& attributes, const std::string& content = "") {
  return "<" + name + " " + attributes + (content.empty() ? "/>" : ">" + content + "</" + name + ">");
}

std::string text_at(double x, double y, const std::string& anchor, const std::string& what, const std::string& style = "") {
  return element("text",
                 "x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\"" +
                   (style.empty() ? "" : " class=\"" + style + "\""),
                 escaped(what));
}

/// The place nearest to `x` at which a centred text stays within the picture.
double centre_within(double x, double text_width) { return std::clamp(x, text_width / 2 + 1, width - text_width / 2 - 1); }

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return element(
    "line", "x1=\"" + px(x1) + "\" y1=\"" + px(y1) + "\" x2=\"" + px(x2) + "\" y2=\"" + px(y2) + "\" class=\"" + style + "\"");
}

std::string corners(std::initializer_list<std::array<double, 2>> all, double x, double y) {
  std::string text;
  for (const auto& each : all) text += (text.empty() ? "" : " ") + px(x + each[0]) + "," + px(y + each[1]);
  return text;
}

std::string mark_at(int which, double x, double y) {
  const auto polygon = [&](std::initializer_list<std::array<double, 2>> all) {
    return element("polygon", "points=\"" + corners(all, x, y) + "\" class=\"mark\"");
  };
  switch (which) {
    case 0:
      return element("circle", "cx=\"" + px(x) + "\" cy=\"" + px(y) + "\" r=\"3.4\" class=\"mark\"");
    case 1:
      return polygon({{-3.1, -3.1}, {3.1, -3.1}, {3.1, 3.1}, {-3.1, 3.1}});
    case 2:
      return polygon({{0, -4.2}, {4.1, 3.2}, {-4.1, 3.2}});
    case 3:
      return polygon({{0, -4.6}, {4.6, 0}, {0, 4.6}, {-4.6, 0}});
    case 4:
      return polygon({{0, 4.2}, {4.1, -3.2}, {-4.1, -3.2}});
    case 6:
      return element("circle", "cx=\"" + px(x) + "\" cy=\"" + px(y) + "\" r=\"3.4\" class=\"hollow\"");
    case 7:
      return element("rect", "x=\"" + px(x - 3) + "\" y=\"" + px(y - 3) + "\" width=\"6\" height=\"6\" class=\"hollow\"");
    default:
      return polygon({{-1.3, -4},
                      {1.3, -4},
                      {1.3, -1.3},
                      {4, -1.3},
                      {4, 1.3},
                      {1.3, 1.3},
                      {1.3, 4},
                      {-1.3, 4},
                      {-1.3, 1.3},
                      {-4, 1.3},
                      {-4, -1.3},
                      {-1.3, -1.3}});
  }
}

std::string class_of(const curve_look& look) { return "curve c" + std::to_string(look.colour); }

std::string dashes_of(const curve_look& look) {
  return *look.dashes == '\0' ? "" : std::string(" stroke-dasharray=\"") + look.dashes + "\"";
}

std::vector<point> in_order(const curve& from) {
  auto points = from.points;
  std::stable_sort(points.begin(), points.end(), [](const point& one, const point& other) { return one.x < other.x; });
  return points;
}

std::string value_of_default(const plot& from) {
  return unit_named(from.x.unit).what == quantity::plain ? tick_text(*from.default_x, 0)
                                                         : value_text(*from.default_x, from.x.unit);
}

std::string full_text_of_default(const plot& from) { return "default of " + from.default_name + ": " + value_of_default(from); }

/// Whether the picture has room for the name of the setting. Without room the name is in the legend.
bool has_name_of_default(const plot& from) {
  return !from.default_name.empty() && width_of(full_text_of_default(from), bold_letter) < width;
}

/// The scales of a plot, and what is drawn between them.
class drawing {
 public:
  explicit drawing(const plot& from)
      : from_(from),
        x_(x_values(from), from.x, left + 4, right - 4, false),
        top_(from.default_x ? top_with_default : top_without_default),
        y_(y_values(from), from.y, bottom, top_, true) {}

  std::string frame() const {
    std::string made;
    for (const auto& each : y_.ticks()) {
      made += line(left, y_.at(each.value), right, y_.at(each.value), "grid");
      made += text_at(left - 6, y_.at(each.value) + 4, "end", each.text);
    }
    made += ticks_of_x() + line(left, bottom, right, bottom, "axis");
    made += text_at(1, 12, "start", y_.title(), "title");
    const auto below = x_.title();
    return made + text_at(centre_within((left + right) / 2, width_of(below)), height - 5, "middle", below, "title");
  }

  std::string marked_default() const {
    if (!from_.default_x) return "";
    const double x = x_.at(*from_.default_x);
    const auto name = has_name_of_default(from_) ? full_text_of_default(from_) : "default: " + value_of_default(from_);
    return line(x, top_ - 5, x, bottom, "default") +
           text_at(centre_within(x, width_of(name, bold_letter)), top_ - 10, "middle", name, "default");
  }

  std::string band(const curve& which, const curve_look& look) const {
    std::string above;
    std::string below;
    const auto points = in_order(which);
    const auto known = std::count_if(points.begin(), points.end(), [](const point& each) { return each.range.known(); });
    if (known == 0) return "";
    for (const auto& each : points) {
      const double low = each.range.known() ? each.range.low : each.y;
      const double high = each.range.known() ? each.range.high : each.y;
      above += px(x_.at(each.x)) + "," + px(y_.at(high)) + " ";
      below.insert(0, px(x_.at(each.x)) + "," + px(y_.at(low)) + " ");
    }
    below.pop_back();
    const auto shape = "points=\"" + above + below + "\"";
    const auto style = std::string(points.size() == 1 ? " class=\"whisker\"" : " class=\"band\"");
    return element("g", "class=\"" + class_of(look) + "\"", element("polygon", shape + style));
  }

  std::string lines(const curve& which, const curve_look& look) const {
    const auto points = in_order(which);
    std::string path;
    std::string marks;
    for (const auto& each : points) {
      const double x = x_.at(each.x);
      const double y = y_.at(each.y);
      path += (path.empty() ? "M" : " L") + px(x) + " " + px(y);
      if (points.size() <= most_marked_points) marks += mark_at(look.mark, x, y);
      marks += element("circle", "cx=\"" + px(x) + "\" cy=\"" + px(y) + "\" r=\"9\" class=\"hit\"", tip(which, each));
    }
    return element("g", "class=\"" + class_of(look) + "\"", element("path", "d=\"" + path + "\"" + dashes_of(look)) + marks);
  }

 private:
  static std::vector<double> x_values(const plot& from) {
    std::vector<double> all;
    for (const auto& each : from.curves)
      for (const auto& one : each.points) all.push_back(one.x);
    if (from.default_x) all.push_back(*from.default_x);
    return all;
  }

  static std::vector<double> y_values(const plot& from) {
    std::vector<double> all;
    for (const auto& each : from.curves)
      for (const auto& one : each.points) {
        all.push_back(one.y);
        for (const double end : {one.range.low, one.range.high})
          if (one.range.known() && (!from.y.log || end > 0)) all.push_back(end);
      }
    return all;
  }

  /// A tick without room beside the ticks before it has no text. 0 and both ends of the axis come first, then those between.
  std::string ticks_of_x() const {
    const auto all = x_.ticks();
    std::vector<std::array<double, 2>> taken;
    std::string made;
    const auto put = [&](const tick& each) {
      const double half = width_of(each.text) / 2 + 3;
      const double x = centre_within(x_.at(each.value), 2 * half);
      made += line(x_.at(each.value), bottom, x_.at(each.value), bottom + 4, "axis");
      if (std::any_of(taken.begin(), taken.end(),
                      [&](const auto& other) { return x - half < other[1] && other[0] < x + half; }))
        return;
      taken.push_back({x - half, x + half});
      made += text_at(x, bottom + 17, "middle", each.text);
    };
    if (x_.has_zero()) {
      const double between = (x_.at(0) + left + 0.1 * (right - left)) / 2;
      for (const double each : {between - 2, between + 2}) made += line(each - 2, bottom + 4, each + 2, bottom - 4, "axis");
    }
    for (const auto& each : all) put(each);
    return made;
  }

  std::string tip(const curve& which, const point& at) const {
    auto text = which.name + "\n" + from_.x.label + ": " + value_text(at.x, from_.x.unit) + "\n" + from_.y.label + ": " +
                value_text(at.y, from_.y.unit);
    if (at.range.known())
      text += " (" + value_text(at.range.low, from_.y.unit) + " to " + value_text(at.range.high, from_.y.unit) + ")";
    return "<title>" + escaped(text) + "</title>";
  }

  const plot& from_;
  axis_scale x_;
  double top_;
  axis_scale y_;
};

}  // namespace

std::vector<curve_look> looks_of(const std::vector<curve>& curves) {
  constexpr std::array<int, 3 + colours_of_variants> marks{3, 0, 1, 2, 4, 5, 6, 7};
  std::vector<curve_look> looks;
  int variants = 0;
  std::array<bool, 3> taken{};  // the colours of the first floor, of troupe and of the first peer
  for (const auto& each : curves) {
    int colour = each.part == role::floor ? 0 : each.part == role::troupe ? 1 : each.part == role::peer ? 2 : 3;
    const char* dashes = colour == 0 ? "2 3" : colour == 2 ? "7 3" : "";
    if (colour == 3 || std::exchange(taken[static_cast<std::size_t>(colour)], true)) {
      if (variants >= colours_of_variants) dashes = *dashes == '\0' ? "12 3" : "9 3 2 3";
      colour = 3 + variants++ % colours_of_variants;
    }
    looks.push_back({colour, marks[static_cast<std::size_t>(colour)], dashes});
  }
  return looks;
}

std::string picture_of(const plot& from) {
  const drawing all(from);
  const auto looks = looks_of(from.curves);
  std::string made = all.frame();
  for (std::size_t i = 0; i < looks.size(); ++i) made += all.band(from.curves[i], looks[i]);
  made += all.marked_default();
  for (std::size_t i = 0; i < looks.size(); ++i) made += all.lines(from.curves[i], looks[i]);
  return element("svg",
                 "viewBox=\"0 0 " + px(width) + " " + px(height) + "\" role=\"img\" aria-label=\"" + escaped(from.title) + "\"",
                 made);
}

std::string legend_of(const plot& from) {
  const auto looks = looks_of(from.curves);
  std::string made;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const auto piece = element("g", "class=\"" + class_of(looks[i]) + "\"",
                               element("path", "d=\"M1 7 H31\"" + dashes_of(looks[i])) + mark_at(looks[i].mark, 16, 7));
    made +=
      "<li>" + element("svg", "viewBox=\"0 0 32 14\" aria-hidden=\"true\"", piece) + escaped(from.curves[i].name) + "</li>";
  }
  if (from.default_x && !from.default_name.empty() && !has_name_of_default(from))
    made += "<li>" + element("svg", "viewBox=\"0 0 32 14\" aria-hidden=\"true\"", line(16, 0, 16, 14, "default")) +
            "default of " + escaped(from.default_name) + "</li>";
  return "<ul class=\"legend\">" + made + "</ul>\n";
}

}  // namespace troupe::bench
