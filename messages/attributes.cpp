// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/attributes.hpp>

#include <array>
#include <limits>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/message_size.hpp>

namespace troupe {

namespace {

/// Returns the type of the value in words. `names` has the order of the types in the variant.
std::string type_of(const attribute& x) {
  constexpr std::array names{
    "a bool", "an integer", "a double", "a string", "a list of integers", "a list of doubles", "a list of strings"};
  static_assert(names.size() == std::variant_size_v<decltype(attribute::value)>);
  return names[x.value.index()];
}

std::string names_in(const attributes& from) {
  std::string names;
  for (const auto& entry : from) names += (names.empty() ? "" : ", ") + entry.first;
  return names.empty() ? "none" : names;
}

/// Returns how many entries a list has; 0 for a value that is no list.
std::size_t entries_of(const attribute& x) {
  return std::visit(
    [](const auto& value) -> std::size_t {
      using type = std::decay_t<decltype(value)>;
      if constexpr (std::is_arithmetic_v<type> || std::is_same_v<type, std::string>)
        return 0;
      else
        return value.size();
    },
    x.value);
}

}  // namespace

std::size_t bytes_of(const attribute& x) {
  if (const auto* text = std::get_if<std::string>(&x.value)) return text->size();
  auto bytes = entries_of(x) * sizeof(std::int64_t);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&x.value))
    for (const auto& each : *texts) bytes += each.size();
  return bytes;
}

void check_can_travel(const attributes& values, std::string_view what) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::misuse,
                std::string(what) + ": " + why + " travel in one message; send large values as tensors, or in several");
  };
  auto count = values.size();
  std::size_t bytes = 0;
  for (const auto& [name, x] : values) {
    constexpr std::size_t of_value = 32;  // bytes: more than the number or the lengths of a value take
    if (name.size() > max_attribute_name_bytes)
      throw error(errc::misuse, std::string(what) + ": the name of a value has " + std::to_string(name.size()) +
                                  " bytes, expected at most " + std::to_string(max_attribute_name_bytes));
    count += entries_of(x);
    bytes += of_value + name.size() + bytes_of(x);
  }
  if (count > max_attributes) refuse("it has " + std::to_string(count) + " values, at most " + std::to_string(max_attributes));
  if (bytes > max_attribute_bytes)
    refuse("its values have " + std::to_string(bytes) + " bytes together, at most " + std::to_string(max_attribute_bytes));
}

namespace detail {

std::int64_t attribute_from(std::uint64_t number) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  if (number > static_cast<std::uint64_t>(most))
    throw error(errc::misuse, "an attribute is " + std::to_string(number) + ", expected an integer of at most " +
                                std::to_string(most) + "; a larger one may travel as a string");
  return static_cast<std::int64_t>(number);
}

void attribute_is_missing(const attributes& from, const std::string& name, const attribute& expected) {
  throw error(errc::misuse, "attribute '" + name + "' (" + type_of(expected) + ") is missing; given are: " + names_in(from));
}

void attribute_is_too_large(const std::string& name, std::int64_t number, std::size_t bits, bool is_signed) {
  throw error(errc::misuse, "attribute '" + name + "' is " + std::to_string(number) + ", expected " +
                              (is_signed ? "an integer" : "an integer of at least 0") + " that fits into " +
                              std::to_string(bits) + " bits");
}

const attribute* find_attribute(const attributes& from, const std::string& name, attribute& expected) {
  const auto found = from.find(name);
  if (found == from.end()) return nullptr;
  const auto& x = found->second;
  if (x.value.index() == expected.value.index()) return &x;
  auto* const real = std::get_if<double>(&expected.value);
  auto* const reals = std::get_if<std::vector<double>>(&expected.value);
  const auto* const integer = std::get_if<std::int64_t>(&x.value);
  const auto* const integers = std::get_if<std::vector<std::int64_t>>(&x.value);
  if (real != nullptr && integer != nullptr)
    *real = static_cast<double>(*integer);
  else if (reals != nullptr && integers != nullptr)
    reals->assign(integers->begin(), integers->end());
  else
    throw error(errc::misuse, "attribute '" + name + "' is " + type_of(x) + ", expected " + type_of(expected));
  return &expected;
}

}  // namespace detail

}  // namespace troupe
