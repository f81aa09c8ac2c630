// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

namespace detail {

template <class T>
concept attribute_integer = std::integral<T> && !std::same_as<T, bool>;

/// Converts a number to the type in which attributes store integers. Throws troupe::error (misuse) if it does not fit.
std::int64_t attribute_from(std::uint64_t number);

template <class T>
struct attribute_kind {
  static constexpr bool is_known = false;
};
template <class T>
struct known_attribute_kind {
  static constexpr bool is_known = true;
  using stored = T;
};
template <>
struct attribute_kind<bool> : known_attribute_kind<bool> {};
template <attribute_integer T>
struct attribute_kind<T> : known_attribute_kind<std::int64_t> {};
template <std::floating_point T>
struct attribute_kind<T> : known_attribute_kind<double> {};
template <>
struct attribute_kind<std::string> : known_attribute_kind<std::string> {};
template <attribute_integer T>
struct attribute_kind<std::vector<T>> : known_attribute_kind<std::vector<std::int64_t>> {};
template <std::floating_point T>
struct attribute_kind<std::vector<T>> : known_attribute_kind<std::vector<double>> {};
template <>
struct attribute_kind<std::vector<std::string>> : known_attribute_kind<std::vector<std::string>> {};

}  // namespace detail

/// A plain value that travels beside tensors: a bool, an integer, a floating-point number or a string, or a list of integers,
/// of floating-point numbers or of strings. A string may hold any bytes. Large lists travel as tensors.
struct attribute {
  std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
               std::vector<std::string>>
    value;

  attribute() : value(false) {}
  template <std::same_as<bool> T>
  attribute(T x) : value(x) {}
  /// Throws troupe::error (misuse) for a number above 2^63 - 1.
  template <detail::attribute_integer T>
  attribute(T x) : value(integer(x)) {}
  template <std::floating_point T>
  attribute(T x) : value(static_cast<double>(x)) {}
  attribute(const char* x) : value(std::string(x)) {}
  attribute(std::string x) : value(std::move(x)) {}
  attribute(std::string_view x) : value(std::string(x)) {}
  /// Throws troupe::error (misuse) for a number above 2^63 - 1.
  template <detail::attribute_integer T>
  attribute(const std::vector<T>& list) : value(std::vector<std::int64_t>()) {
    auto& to = std::get<std::vector<std::int64_t>>(value);
    to.reserve(list.size());
    for (const T x : list) to.push_back(integer(x));
  }
  template <std::floating_point T>
  attribute(const std::vector<T>& list) : value(std::vector<double>(list.begin(), list.end())) {}
  attribute(std::vector<std::string> list) : value(std::move(list)) {}

  bool operator==(const attribute&) const = default;

 private:
  template <class T>
  static std::int64_t integer(T x) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) >= sizeof(std::int64_t))
      return detail::attribute_from(x);
    else
      return x;
  }
};

/// Named values, as `{{"width", 128}, {"causal", true}}`.
using attributes = std::map<std::string, attribute>;

/// Returns the bytes of the text or of the list entries of a value; 0 for a value that is neither a text nor a list.
std::size_t bytes_of(const attribute& x);

/// Throws troupe::error (misuse) if there are too many values for a message, or too long ones (message_size.hpp). Entries of
/// lists count as values. The text begins with `what`.
void check_can_travel(const attributes& values, std::string_view what);

namespace detail {

/// Finds the value of that name and returns its address; null if the name is missing. If the value has to be converted to the
/// type of `expected`, the converted value is written to `expected`, and the result points to `expected`.
const attribute* find_attribute(const attributes& from, const std::string& name, attribute& expected);
[[noreturn]] void attribute_is_missing(const attributes& from, const std::string& name, const attribute& expected);
/// Throws troupe::error (misuse) that says that the number does not fit into an integer of `bits` bits.
[[noreturn]] void attribute_is_too_large(const std::string& name, std::int64_t number, std::size_t bits, bool is_signed);

template <class T>
T attribute_as(const typename attribute_kind<T>::stored& stored, const std::string& name) {
  if constexpr (std::same_as<T, typename attribute_kind<T>::stored>) {
    return stored;
  } else if constexpr (attribute_integer<T>) {
    if (!std::in_range<std::conditional_t<std::is_signed_v<T>, std::make_signed_t<T>, std::make_unsigned_t<T>>>(stored))
      attribute_is_too_large(name, stored, 8 * sizeof(T), std::is_signed_v<T>);
    return static_cast<T>(stored);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(stored);
  } else {
    T result;
    result.reserve(stored.size());
    for (const auto& each : stored) result.push_back(attribute_as<typename T::value_type>(each, name));
    return result;
  }
}

template <class T>
constexpr void check_attribute_type() {
  static_assert(
    attribute_kind<T>::is_known,
    "an attribute is a bool, an integer, a floating-point number or a std::string, or a std::vector of integers, of "
    "floating-point numbers or of std::string; ask for one of these types");
}

}  // namespace detail

/// Returns the value of that name as T: a bool, an integer of any size, a floating-point number, a std::string, or a
/// std::vector of one of the last three. Throws troupe::error (misuse) if the name is missing, if its value is of another type,
/// or if an integer does not fit. An integer is accepted where a floating-point number is asked for, in lists too.
template <class T>
T get(const attributes& from, const std::string& name) {
  detail::check_attribute_type<T>();
  using stored = typename detail::attribute_kind<T>::stored;
  attribute expected = stored{};
  const auto* found = detail::find_attribute(from, name, expected);
  if (found == nullptr) detail::attribute_is_missing(from, name, expected);
  return detail::attribute_as<T>(std::get<stored>(found->value), name);
}

/// As get(), but returns `otherwise` if the name is missing.
template <class T>
T get_or(const attributes& from, const std::string& name, T otherwise) {
  detail::check_attribute_type<T>();
  using stored = typename detail::attribute_kind<T>::stored;
  attribute expected = stored{};
  const auto* found = detail::find_attribute(from, name, expected);
  return found == nullptr ? std::move(otherwise) : detail::attribute_as<T>(std::get<stored>(found->value), name);
}

}  // namespace troupe
