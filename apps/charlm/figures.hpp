// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

namespace troupe::apps::charlm {

/// The value with `digits` digits after the point, such as "1.50".
std::string fixed(double value, int digits);
/// The value as a whole number with commas, such as "24,512".
std::string grouped(double value);
/// Puts commas between groups of three digits of a whole number.
std::string grouped(std::string digits);
/// The time in minutes and seconds, such as "1:05". From an hour on with hours, such as "1:02:03".
std::string clock_text(double seconds);

double seconds_since(std::chrono::steady_clock::time_point begin);

}  // namespace troupe::apps::charlm
