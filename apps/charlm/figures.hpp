// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

namespace troupe::apps::charlm {

/// "1.50": with `digits` digits after the point.
std::string fixed(double value, int digits);
/// "24,512": rounded to a whole number.
std::string grouped(double value);
/// Puts commas into the digits of a whole number.
std::string grouped(std::string digits);
/// "1:05"; "1:02:03" from an hour on.
std::string clock_text(double seconds);

double seconds_since(std::chrono::steady_clock::time_point begin);

}  // namespace troupe::apps::charlm
