// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "runs.hpp"

namespace troupe::bench {

/// What a curve is in a plot: the least that the machine allows, another system, troupe, or troupe with another setting.
enum class role { floor, peer, troupe, variant };

struct point {
  double x = 0;
  double y = 0;
  value_range range{};  // of y
};

/// The median of the runs, and the middle half of them.
point point_of(double x, const std::vector<double>& runs);

struct curve {
  std::string name;
  role as = role::troupe;
  std::vector<point> points{};
};

/// A curve over these values of x. `measure(x)` returns the runs that a point stands for, or the point itself.
template <class X, class Measure>
curve curve_over(const std::vector<X>& values, std::string name, role as, Measure measure) {
  curve made{std::move(name), as};
  for (const X& x : values) {
    const auto found = measure(x);
    if constexpr (std::is_same_v<decltype(found), const point>)
      made.points.push_back(found);
    else
      made.points.push_back(point_of(static_cast<double>(x), found));
  }
  return made;
}

/// Units of time ("ns", "us", "ms", "s") and of memory ("bytes", "KiB", "MiB") are shown in the size that suits a value.
struct plot_axis {
  std::string label;  // "size of the message"
  std::string unit;   // "bytes"; may be empty
  bool log = false;   // logarithmic, with a position of its own for 0
};

/// Curves in one picture.
struct plot {
  std::string title;        // "A message by its size"
  std::string how_to_read;  // one plain sentence
  plot_axis x{};
  plot_axis y{};
  std::vector<curve> curves{};
  std::optional<double> default_x{};  // the value that the code has as its default
  std::string default_name{};         // the setting whose default it is: "middleman.workers"; may be empty
  std::string group{};                // "messages": the section of the page
  std::string name{};                 // "message_size": unique in its file
};

/// "all_to_all" as people write it.
std::string words_of(std::string name);

/// Writes `<folder>/<name>.curves.json`, put in place by a rename. Throws std::runtime_error with the file's name on failure.
void write_curves(const std::filesystem::path& folder, const std::string& name, const std::vector<plot>& plots);

}  // namespace troupe::bench
