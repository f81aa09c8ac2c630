// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <troupe/messages/plain_text.hpp>

#include "apps/charlm/figures.hpp"

namespace troupe::apps::charlm {

namespace {

constexpr double page_width = 860, page_height = 480;
constexpr double left = 70, right = 24, top = 84, bottom = 62;
constexpr const char* ink = "#2b2b2b";
constexpr const char* faint = "#e4e4e4";

std::string number(double value) { return number_text(std::abs(value) < 1e-12 ? 0.0 : value, 10); }

/// Returns the text of a number at an axis. From 10,000 on, its digits are in groups of three: 12,000.
std::string label(double value) {
  auto text = number(value);
  if (std::abs(value) < 10000 || text.find_first_of(".e") != std::string::npos) return text;
  return grouped(std::move(text));
}

std::string coordinate(double value) { return fixed_text(value, 1); }

std::string escaped(const std::string& text) {
  std::string out;
  for (const auto c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

struct range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void settle(double margin) {
    if (!(low <= high)) low = 0, high = 1;
    if (low == high) low -= 0.5, high += 0.5;
    const auto more = (high - low) * margin;
    low -= more;
    high += more;
  }
};

bool finite(const std::pair<double, double>& point) { return std::isfinite(point.first) && std::isfinite(point.second); }

/// Draws the parts of a chart as SVG. x() and y() turn values of the data into positions on the page.
class canvas {
 public:
  canvas(const chart& of, classic_ostringstream& out) : chart_(of), out_(out) {
    for (const auto& each : of.series)
      for (const auto& point : each.points)
        if (finite(point)) x_.include(point.first), y_.include(point.second);
    for (const auto& level : of.levels)
      if (std::isfinite(level.value)) y_.include(level.value);
    x_.settle(0);
    y_.settle(0.05);
  }

  void axes() {
    for (const auto value : ticks(y_.low, y_.high, 6)) {
      line(left, y(value), page_width - right, y(value), faint);
      text(left - 8, y(value) + 4, label(value), "end");
    }
    for (const auto value : ticks(x_.low, x_.high, 8)) {
      line(x(value), page_height - bottom, x(value), page_height - bottom + 5, ink);
      text(x(value), page_height - bottom + 20, label(value), "middle");
    }
    line(left, page_height - bottom, page_width - right, page_height - bottom, ink);
    line(left, top, left, page_height - bottom, ink);
    text((left + page_width - right) / 2, page_height - 16, chart_.x_label, "middle");
    out_ << "<text transform=\"translate(20," << coordinate((top + page_height - bottom) / 2)
         << ") rotate(-90)\" text-anchor=\"middle\">" << escaped(chart_.y_label) << "</text>\n";
    out_ << "<text x=\"" << left << "\" y=\"30\" font-size=\"17\" font-weight=\"600\">" << escaped(chart_.title) << "</text>\n";
  }

  void draw(const chart_level& level) {
    if (!std::isfinite(level.value)) return;
    out_ << "<line x1=\"" << left << "\" y1=\"" << coordinate(y(level.value)) << "\" x2=\"" << page_width - right << "\" y2=\""
         << coordinate(y(level.value)) << "\" stroke=\"" << level.colour
         << "\" stroke-width=\"1.6\" stroke-dasharray=\"7 5\"/>\n";
  }

  void draw(const chart_series& series) {
    out_ << "<polyline fill=\"none\" stroke=\"" << series.colour << "\" stroke-width=\"" << number(series.width)
         << "\" stroke-linejoin=\"round\" points=\"";
    for (const auto& point : series.points)
      if (finite(point)) out_ << coordinate(x(point.first)) << ',' << coordinate(y(point.second)) << ' ';
    out_ << "\"/>\n";
    if (series.dots)
      for (const auto& point : series.points)
        if (finite(point))
          out_ << "<circle cx=\"" << coordinate(x(point.first)) << "\" cy=\"" << coordinate(y(point.second))
               << "\" r=\"3\" fill=\"" << series.colour << "\"/>\n";
  }

  void legend() {
    auto at = left;
    const auto entry = [&](const std::string& name, const std::string& colour, const char* extra) {
      out_ << "<line x1=\"" << at << "\" y1=\"54\" x2=\"" << at + 26 << "\" y2=\"54\" stroke=\"" << colour
           << "\" stroke-width=\"2.5\"" << extra << "/>\n";
      text(at + 33, 58, name, "start");
      at += 33 + 7.2 * static_cast<double>(name.size()) + 22;
    };
    for (const auto& each : chart_.series) entry(each.name, each.colour, "");
    for (const auto& each : chart_.levels)
      entry(each.name + " (" + coordinate2(each.value) + ")", each.colour, " stroke-dasharray=\"7 5\"");
  }

 private:
  static std::string coordinate2(double value) { return fixed_text(value, 2); }
  double x(double value) const { return left + (value - x_.low) / (x_.high - x_.low) * (page_width - left - right); }
  double y(double value) const {
    return page_height - bottom - (value - y_.low) / (y_.high - y_.low) * (page_height - top - bottom);
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    out_ << "<line x1=\"" << coordinate(x1) << "\" y1=\"" << coordinate(y1) << "\" x2=\"" << coordinate(x2) << "\" y2=\""
         << coordinate(y2) << "\" stroke=\"" << colour << "\"/>\n";
  }
  void text(double at_x, double at_y, const std::string& what, const char* anchor) {
    out_ << "<text x=\"" << coordinate(at_x) << "\" y=\"" << coordinate(at_y) << "\" text-anchor=\"" << anchor << "\">"
         << escaped(what) << "</text>\n";
  }

  const chart& chart_;
  classic_ostringstream& out_;
  range x_, y_;
};

}  // namespace

std::vector<double> ticks(double low, double high, int wanted) {
  if (!(high > low) || wanted < 1) return {low};
  const auto rough = (high - low) / wanted;
  const auto power = std::pow(10.0, std::floor(std::log10(rough)));
  const auto ratio = rough / power;
  const auto gap = power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
  std::vector<double> values;
  const auto first = std::ceil(low / gap - 1e-9);
  for (double i = first; i * gap <= high + gap * 1e-9; ++i) values.push_back(i * gap);
  return values;
}

std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points, std::size_t most) {
  if (points.size() <= most || most == 0) return points;
  std::vector<std::pair<double, double>> out;
  for (std::size_t i = 0; i < most; ++i) {
    const auto begin = points.size() * i / most;
    const auto end = points.size() * (i + 1) / most;
    double x = 0, y = 0;
    for (auto at = begin; at < end; ++at) x += points[at].first, y += points[at].second;
    out.emplace_back(x / static_cast<double>(end - begin), y / static_cast<double>(end - begin));
  }
  return out;
}

std::string chart::to_svg() const {
  classic_ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << page_width << ' ' << page_height << "\" width=\""
      << page_width << "\" height=\"" << page_height << "\" font-family=\"sans-serif\" font-size=\"13\" fill=\"" << ink
      << "\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  canvas on{*this, out};
  on.axes();
  for (const auto& each : levels) on.draw(each);
  for (const auto& each : series) on.draw(each);
  on.legend();
  out << "</svg>\n";
  return out.str();
}

}  // namespace troupe::apps::charlm
