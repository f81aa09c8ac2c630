// SPDX-License-Identifier: BSD-3-Clause
#include "figure_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

namespace troupe::bench {

namespace {

struct size_of_unit {
  const char* name;
  double size;
};

constexpr std::array<size_of_unit, 4> times{{{"ns", 1e-9}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
constexpr std::array<size_of_unit, 5> memories{
  {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776}}};

std::string with_commas(std::string digits) {
  const auto begin = digits.find_first_of("0123456789");
  const auto point = std::min(digits.find('.'), digits.size());
  for (auto place = static_cast<std::ptrdiff_t>(point) - 3; place > static_cast<std::ptrdiff_t>(begin); place -= 3)
    digits.insert(static_cast<std::size_t>(place), ",");
  return digits;
}

std::string in_digits(int digits_behind_point, double value) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", digits_behind_point, value);
  return with_commas(text);
}

/// As few digits as the value needs, at most three that count.
std::string without_zeros(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3g", value);
  if (std::abs(value) >= 100) return in_digits(0, value);
  return text;
}

template <class Sizes>
named_size largest_below(const Sizes& sizes, double value) {
  named_size found{sizes.front().name, sizes.front().size};
  for (const auto& each : sizes)
    if (each.size <= value * (1 + 1e-9)) found = {each.name, each.size};
  return found;
}

}  // namespace

known_unit unit_named(const std::string& unit) {
  static const std::map<std::string, known_unit> known{{"ns", {quantity::time, 1e-9}},
                                                       {"us", {quantity::time, 1e-6}},
                                                       {"µs", {quantity::time, 1e-6}},
                                                       {"ms", {quantity::time, 1e-3}},
                                                       {"s", {quantity::time, 1}},
                                                       {"B", {quantity::memory, 1}},
                                                       {"byte", {quantity::memory, 1}},
                                                       {"bytes", {quantity::memory, 1}},
                                                       {"KiB", {quantity::memory, 1024}},
                                                       {"MiB", {quantity::memory, 1048576}},
                                                       {"GiB", {quantity::memory, 1073741824}}};
  const auto found = known.find(unit);
  return found == known.end() ? known_unit{} : found->second;
}

named_size unit_for(quantity what, double value) {
  return what == quantity::time ? largest_below(times, value) : largest_below(memories, value);
}

std::string number_text(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (size < 0.01) {
    char text[64];
    std::snprintf(text, sizeof text, "%.2g", value);
    return text;
  }
  return in_digits(size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0, value);
}

std::string tick_text(double value, double largest) {
  const double size = std::abs(value);
  if (largest >= 10'000 && size >= 1000) {
    if (size >= 1e9) return without_zeros(value / 1e9) + " G";
    return size >= 1e6 ? without_zeros(value / 1e6) + " M" : without_zeros(value / 1e3) + " k";
  }
  return without_zeros(value);
}

std::string value_text(double value, const std::string& unit) {
  const auto known = unit_named(unit);
  if (known.what == quantity::plain && value != 0) return number_text(value) + (unit.empty() ? "" : " " + unit_text(unit));
  if (value == 0) return unit.empty() ? "0" : "0 " + unit_text(unit);
  const auto best = unit_for(known.what, std::abs(value * known.size));
  const double shown = value * known.size / best.size;
  const bool whole = std::abs(shown - std::round(shown)) < 1e-6 * std::abs(shown);
  return (whole ? without_zeros(std::round(shown)) : number_text(shown)) + " " + best.name;
}

std::string unit_text(const std::string& unit) {
  if (unit.rfind("us", 0) == 0 && (unit.size() == 2 || unit[2] == '/' || unit[2] == ' ')) return "µs" + unit.substr(2);
  return unit;
}

std::string date_text(std::time_t when) {
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

std::string escaped(const std::string& text) {
  std::string made;
  for (const char each : text) switch (each) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '"':
        made += "&quot;";
        break;
      default:
        made += each;
    }
  return made;
}

}  // namespace troupe::bench
