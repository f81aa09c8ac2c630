// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace troupe::apps::charlm {

struct chart_series {
  std::string name;
  std::string colour;  // "#1f5fa8"
  double width = 2;
  bool dots = false;  // draw a dot at each point too
  std::vector<std::pair<double, double>> points;
};

/// A horizontal line across a chart.
struct chart_level {
  std::string name;
  std::string colour;
  double value = 0;
};

/// A line chart as an SVG image of 860 x 480.
///   CH-1  every finite point of a series lies inside the axes. Points that are not finite are left out.
///   CH-2  the distance between two ticks is 1, 2 or 5 times a power of ten. Each tick has a label.
struct chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<chart_series> series;
  std::vector<chart_level> levels;

  std::string to_svg() const;
};

/// Returns about `wanted` numbers in [low, high]. The distance between two of them is 1, 2 or 5 times a power of ten.
std::vector<double> ticks(double low, double high, int wanted);

/// Returns at most `most` points. Each of them is the mean of a group of neighbouring points. The groups are equally large.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points, std::size_t most);

}  // namespace troupe::apps::charlm
