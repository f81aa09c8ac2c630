// SPDX-License-Identifier: BSD-3-Clause
#include "axis_scale.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "figure_text.hpp"

namespace troupe::bench {

namespace {

constexpr double share_of_zero = 0.1;  // of the length of a logarithmic axis
constexpr std::size_t most_ticks = 7;
constexpr double slack = 1e-9;

/// 1, 2 or 5 times a power of ten, next to `value` from below or above.
double round_below(double value) {
  const double decade = std::pow(10, std::floor(std::log10(value) + slack));
  const double times = value / decade * (1 + slack);
  return decade * (times >= 5 ? 5 : times >= 2 ? 2 : 1);
}

double round_above(double value) {
  const double below = round_below(value);
  if (below >= value * (1 - slack)) return below;
  const double decade = std::pow(10, std::floor(std::log10(below) + slack));
  const double times = std::round(below / decade);
  return decade * (times >= 5 ? 10 : times >= 2 ? 5 : 2);
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5;
}

}  // namespace

axis_scale::axis_scale(const std::vector<double>& values, const plot_axis& kind, double first, double last, bool wide)
    : kind_(kind), unit_name_(unit_text(kind.unit)), first_(first), last_(last) {
  std::vector<double> some = values;
  if (kind.log) {
    has_zero_ = std::any_of(some.begin(), some.end(), [](double each) { return each <= 0; });
    std::erase_if(some, [](double each) { return each <= 0; });
    powers_of_two_ = std::all_of(some.begin(), some.end(), is_power_of_two);
  }
  if (some.empty()) throw std::runtime_error("the axis '" + kind.label + "' has no value that it could show");
  const auto [least, most] = std::minmax_element(some.begin(), some.end());
  low_ = *least;
  high_ = *most;
  if (kind.log && wide) {
    low_ = round_below(low_);
    high_ = round_above(high_);
  } else if (!kind.log && low_ >= 0 && (wide || low_ <= 0.25 * high_)) {
    low_ = 0;
  }
  if (low_ == high_) {  // one value alone
    const double size = low_ == 0 ? 1 : std::abs(low_);
    high_ = kind.log ? low_ * 2 : low_ + size;
    low_ = kind.log ? low_ / 2 : low_ - (low_ == 0 ? 0 : size);
  }
  if (!kind.log && wide) {
    const double step = round_above((high_ - low_) / 5);
    high_ = low_ + std::ceil((high_ - low_) / step - slack) * step;
  }
  if (!kind.log && !wide) {  // 99.9 ends at 100
    const double step = round_above((high_ - low_) / 5);
    const double next = std::ceil(high_ / step - slack) * step;
    if (next - high_ < 0.05 * (high_ - low_)) high_ = next;
  }
  const auto known = unit_named(kind.unit);
  if (known.what != quantity::plain && !kind.log) {
    const auto best = unit_for(known.what, std::max(std::abs(low_), std::abs(high_)) * known.size);
    unit_ = best.size / known.size;
    unit_name_ = best.name;
  }
}

double axis_scale::at(double value) const {
  if (!kind_.log) return first_ + std::clamp((value - low_) / (high_ - low_), 0.0, 1.0) * (last_ - first_);
  if (value <= 0 && has_zero_) return first_;
  const double begin = has_zero_ ? first_ + share_of_zero * (last_ - first_) : first_;
  const double share = std::log(std::max(value, low_) / low_) / std::log(high_ / low_);
  return begin + std::min(share, 1.0) * (last_ - begin);
}

bool axis_scale::ticks_have_units() const { return kind_.log && unit_named(kind_.unit).what != quantity::plain; }

std::string axis_scale::title() const {
  return kind_.label + (kind_.unit.empty() || ticks_have_units() ? "" : " (" + unit_name_ + ")");
}

std::string axis_scale::text_of(double value) const {
  if (!ticks_have_units()) return tick_text(value / unit_, high_ / unit_);
  if (value == 0) return "0";
  return value_text(value, kind_.unit);
}

/// Powers of ten, if there are three of them; else 1, 2 and 5 times a power of ten.
std::vector<double> axis_scale::rounds_of_decades() const {
  std::vector<double> tens;
  std::vector<double> all;
  for (double value = round_above(low_); value <= high_ * (1 + slack); value = round_above(value * 1.5)) {
    all.push_back(value);
    if (std::abs(std::log10(value) - std::round(std::log10(value))) < 1e-6) tens.push_back(value);
  }
  return tens.size() >= 3 ? tens : all;
}

std::vector<double> axis_scale::powers_of_two() const {
  const double size = unit_named(kind_.unit).size;  // KiB and MiB are powers of two too
  std::vector<double> all;
  const int last = static_cast<int>(std::floor(std::log2(high_ * size) + slack));
  for (const int step : {1, 2, 5, 10, 20}) {
    all.clear();
    int exponent = static_cast<int>(std::ceil(std::log2(low_ * size) - slack));
    while (exponent % step != 0) ++exponent;
    for (; exponent <= last; exponent += step) all.push_back(std::exp2(exponent) / size);
    if (all.size() <= most_ticks) break;
  }
  return all;
}

std::vector<double> axis_scale::rounds() const {
  double step = round_above((high_ - low_) / unit_ / 5) * unit_;
  std::vector<double> all;
  for (double value = std::ceil(low_ / step - slack) * step; value <= high_ + slack * step; value += step)
    all.push_back(std::abs(value) < slack * step ? 0 : value);
  return all;
}

std::vector<tick> axis_scale::ticks() const {
  std::vector<double> values;
  if (kind_.log) {
    const bool twos = powers_of_two_ || unit_named(kind_.unit).what == quantity::memory;
    values = twos ? powers_of_two() : rounds_of_decades();
    if (values.size() < 3 && high_ < 20 * low_) values = rounds();
    const auto step = (values.size() + most_ticks) / (most_ticks + 1);
    for (std::size_t place = values.size(); step > 1 && place-- > 0;)
      if (place % step != 0) values.erase(values.begin() + static_cast<std::ptrdiff_t>(place));
    if (has_zero_) values.insert(values.begin(), 0);
  } else {
    values = rounds();
  }
  std::vector<tick> all;
  for (const double each : values) all.push_back({each, text_of(each)});
  return all;
}

}  // namespace troupe::bench
