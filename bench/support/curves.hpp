// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "value_range.hpp"

namespace troupe::bench {

/// What a curve is in a plot: the least that the machine allows, another system, troupe, or troupe with another setting.
enum class role { floor, peer, troupe, variant };

struct point {
  double x = 0;
  double y = 0;
  value_range range{};  // of y
};

struct curve {
  std::string name;
  role part = role::troupe;
  std::vector<point> points{};
};

/// Units of time ("ns", "us", "ms", "s") and of memory ("bytes", "KiB", "MiB") are shown in the size that suits a value.
struct plot_axis {
  std::string label;  // "size of the message"
  std::string unit;   // "bytes"; may be empty
  bool log = false;   // logarithmic, with a place of its own for 0
};

/// Curves in one picture.
struct plot {
  std::string group;        // "messages": the section of the page
  std::string name;         // "message_size": unique in its file
  std::string title;        // "A message by its size"
  std::string how_to_read;  // one plain sentence
  plot_axis x{};
  plot_axis y{};
  std::vector<curve> curves{};
  std::optional<double> default_x{};  // the value that the code has as its default
  std::string default_name{};         // the setting whose default it is: "middleman.workers"; may be empty
};

/// Writes `<folder>/<name>.curves.json`, put in place by a rename. Throws std::runtime_error with the file's name on failure.
void write_curves(const std::filesystem::path& folder, const std::string& name, const std::vector<plot>& plots);

/// The plots of a file of curves. Points may lack their range. Throws std::runtime_error with the file's name if the file is missing or
/// malformed: an unknown role, a plot without a point, a value below 0 on a logarithmic axis.
std::vector<plot> read_curves(const std::filesystem::path& file);

}  // namespace troupe::bench
