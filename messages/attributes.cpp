// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/attributes.hpp>

#include <limits>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/message_size.hpp>

namespace troupe {

namespace {

template <class T>
constexpr const char* type_name = "";
template <>
constexpr const char* type_name<bool> = "a bool";
template <>
constexpr const char* type_name<std::int64_t> = "an integer";
template <>
constexpr const char* type_name<double> = "a double";
template <>
constexpr const char* type_name<std::string> = "a string";
template <>
constexpr const char* type_name<std::vector<std::int64_t>> = "a list of integers";
template <>
constexpr const char* type_name<std::vector<double>> = "a list of doubles";
template <>
constexpr const char* type_name<std::vector<std::string>> = "a list of strings";

const char* type_of(const attribute& x) {
  return std::visit([](const auto& value) { return type_name<std::decay_t<decltype(value)>>; }, x.value);
}

std::string names_in(const attributes& from) {
  std::string names;
  for (const auto& entry : from) names += (names.empty() ? "" : ", ") + entry.first;
  return names.empty() ? "none" : names;
}

/// The entries of a list; 0 for a value that is none.
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
    constexpr std::size_t of_value = 32;  // more than its numbers take
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

void attribute_is_missing(const attributes& from, const std::string& name, const char* expected) {
  throw error(errc::misuse, "attribute '" + name + "' (" + expected + ") is missing; given are: " + names_in(from));
}

void attribute_is_too_large(const std::string& name, std::int64_t number, std::size_t bits, bool is_signed) {
  throw error(errc::misuse, "attribute '" + name + "' is " + std::to_string(number) + ", expected " +
                              (is_signed ? "an integer" : "an integer of at least 0") + " that fits into " +
                              std::to_string(bits) + " bits");
}

template <class T>
const char* attribute_type_name() noexcept {
  return type_name<T>;
}

template <class T>
const T* find_attribute(const attributes& from, const std::string& name, T& converted) {
  const auto found = from.find(name);
  if (found == from.end()) return nullptr;
  const auto& x = found->second;
  if (const T* value = std::get_if<T>(&x.value)) return value;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* value = std::get_if<std::int64_t>(&x.value)) return &(converted = static_cast<double>(*value));
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    if (const auto* value = std::get_if<std::vector<std::int64_t>>(&x.value)) {
      converted.assign(value->begin(), value->end());
      return &converted;
    }
  }
  throw error(errc::misuse, "attribute '" + name + "' is " + type_of(x) + ", expected " + type_name<T>);
}

template const bool* find_attribute(const attributes&, const std::string&, bool&);
template const std::int64_t* find_attribute(const attributes&, const std::string&, std::int64_t&);
template const double* find_attribute(const attributes&, const std::string&, double&);
template const std::string* find_attribute(const attributes&, const std::string&, std::string&);
template const std::vector<std::int64_t>* find_attribute(const attributes&, const std::string&, std::vector<std::int64_t>&);
template const std::vector<double>* find_attribute(const attributes&, const std::string&, std::vector<double>&);
template const std::vector<std::string>* find_attribute(const attributes&, const std::string&, std::vector<std::string>&);

template const char* attribute_type_name<bool>() noexcept;
template const char* attribute_type_name<std::int64_t>() noexcept;
template const char* attribute_type_name<double>() noexcept;
template const char* attribute_type_name<std::string>() noexcept;
template const char* attribute_type_name<std::vector<std::int64_t>>() noexcept;
template const char* attribute_type_name<std::vector<double>>() noexcept;
template const char* attribute_type_name<std::vector<std::string>>() noexcept;

}  // namespace detail

}  // namespace troupe
