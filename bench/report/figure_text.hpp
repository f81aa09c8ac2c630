// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/bench/report/axis_scale_test.cpp
#pragma once

#include <ctime>
#include <string>

namespace troupe::bench {

/// What a unit of a figure measures. Times count in seconds, memory in bytes, all else in its own unit.
enum class quantity { plain, time, memory };

struct known_unit {
  quantity what = quantity::plain;
  double size = 1;  // in seconds or bytes
};

/// "us" is a time of 1e-6 s, "KiB" a memory of 1024 bytes, "tokens/s" plain.
known_unit unit_named(const std::string& unit);

/// The largest unit of a quantity that is at most `value`, with its name: 0.012 s gives {"ms", 1e-3}. Value in seconds or bytes.
struct named_size {
  std::string name;
  double size = 1;
};
named_size unit_for(quantity what, double value);

/// Three digits, and commas between thousands: "0.123", "4.56", "78.9", "1,234,567". Two digits below 0.01: "0.0074".
std::string number_text(double value);

/// A number without digits that say nothing: "0.5", "20", "1,000"; "20 k" and "1 M" if `largest` is 10,000 or more.
std::string tick_text(double value, double largest);

/// A value with its unit, in the size that suits it: "64 KiB", "1.25 ms", "317 tokens/s".
std::string value_text(double value, const std::string& unit);

/// The unit as people write it: "us" becomes "µs".
std::string unit_text(const std::string& unit);

/// "2026-11-25 19:00 UTC".
std::string date_text(std::time_t when);

/// The text with what HTML and XML give a meaning to replaced.
std::string escaped(const std::string& text);

}  // namespace troupe::bench
