// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace troupe {

/// A plain value that travels beside tensors. A string may hold any bytes.
struct attribute {
  std::variant<bool, std::int64_t, double, std::string> value;

  attribute(bool x) : value(x) {}
  attribute(int x) : value(std::int64_t{x}) {}
  attribute(std::int64_t x) : value(x) {}
  attribute(double x) : value(x) {}
  attribute(const char* x) : value(std::string(x)) {}
  attribute(std::string x) : value(std::move(x)) {}
  attribute() : value(false) {}

  bool operator==(const attribute&) const = default;
};

/// Named values, as `{{"width", 128}, {"causal", true}}`.
using attributes = std::map<std::string, attribute>;

/// Throws troupe::error (misuse) if there are more values than a message may have, or longer ones (message_size.hpp). The text begins
/// with `what`.
void check_can_travel(const attributes& values, std::string_view what);

/// The value of that name. Throws troupe::error (misuse) if the name is missing or its value is not of type T (bool,
/// std::int64_t, double, std::string). An integer is accepted where a double is asked for.
template <class T>
T get(const attributes& from, const std::string& name);

/// As get(), but returns `otherwise` if the name is missing.
template <class T>
T get_or(const attributes& from, const std::string& name, T otherwise);

}  // namespace troupe
