// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "../support/curves.hpp"

namespace troupe::bench {

/// A mark on an axis.
struct tick {
  double value = 0;
  std::string text;
};

/// Where the values of an axis are drawn. A logarithmic axis has a place for 0, left of its smallest other value, if 0 is among the values.
class axis_scale {
 public:
  /// The axis reaches over all values, from `first` to `last` on the picture. `wide`: it begins and ends at round values, and a linear one
  /// at 0. Expects a value above 0 if the axis is logarithmic.
  axis_scale(const std::vector<double>& values, const plot_axis& kind, double first, double last, bool wide);

  /// The place of a value on the picture. Values outside of the axis are at its ends.
  double at(double value) const;

  /// At most about eight marks at round values: 1, 10, 100, or 1, 2, 5, or 1 KiB, 32 KiB, 1 MiB.
  std::vector<tick> ticks() const;

  /// The label, and the unit unless each tick has one.
  std::string title() const;

  bool has_zero() const { return has_zero_; }

 private:
  bool ticks_have_units() const;
  std::string text_of(double value) const;
  std::vector<double> rounds_of_decades() const;
  std::vector<double> powers_of_two() const;
  std::vector<double> rounds() const;

  plot_axis kind_;
  bool powers_of_two_ = false;  // all values are powers of two
  bool has_zero_ = false;
  double unit_ = 1;  // by which values of a linear axis are divided for their texts
  std::string unit_name_;
  double first_;
  double last_;
  double low_ = 0;
  double high_ = 1;
};

}  // namespace troupe::bench
