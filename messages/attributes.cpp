// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/attributes.hpp>

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

const char* type_of(const attribute& x) {
  return std::visit([](const auto& value) { return type_name<std::decay_t<decltype(value)>>; }, x.value);
}

std::string names_in(const attributes& from) {
  std::string names;
  for (const auto& entry : from) names += (names.empty() ? "" : ", ") + entry.first;
  return names.empty() ? "none" : names;
}

template <class T>
T value_of(const attribute& x, const std::string& name) {
  if (const T* value = std::get_if<T>(&x.value)) return *value;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* value = std::get_if<std::int64_t>(&x.value)) return static_cast<double>(*value);
  }
  throw error(errc::misuse, "attribute '" + name + "' is " + type_of(x) + ", expected " + type_name<T>);
}

}  // namespace

void check_can_travel(const attributes& values, std::string_view what) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::misuse,
                std::string(what) + ": " + why + " travel in one message; send large values as tensors, or in several");
  };
  if (values.size() > max_attributes)
    refuse("it has " + std::to_string(values.size()) + " values, at most " + std::to_string(max_attributes));
  std::size_t bytes = 0;
  for (const auto& [name, x] : values) {
    constexpr std::size_t of_value = 32;  // more than its numbers take
    const auto* text = std::get_if<std::string>(&x.value);
    if (name.size() > max_attribute_name_bytes)
      throw error(errc::misuse, std::string(what) + ": the name of a value has " + std::to_string(name.size()) +
                                  " bytes, expected at most " + std::to_string(max_attribute_name_bytes));
    bytes += of_value + name.size() + (text == nullptr ? 0 : text->size());
  }
  if (bytes > max_attribute_bytes)
    refuse("its values have " + std::to_string(bytes) + " bytes together, at most " + std::to_string(max_attribute_bytes));
}

template <class T>
T get(const attributes& from, const std::string& name) {
  auto found = from.find(name);
  if (found == from.end())
    throw error(errc::misuse, "attribute '" + name + "' (" + type_name<T> + ") is missing; given are: " + names_in(from));
  return value_of<T>(found->second, name);
}

template <class T>
T get_or(const attributes& from, const std::string& name, T otherwise) {
  auto found = from.find(name);
  return found == from.end() ? std::move(otherwise) : value_of<T>(found->second, name);
}

template bool get<bool>(const attributes&, const std::string&);
template std::int64_t get<std::int64_t>(const attributes&, const std::string&);
template double get<double>(const attributes&, const std::string&);
template std::string get<std::string>(const attributes&, const std::string&);

template bool get_or<bool>(const attributes&, const std::string&, bool);
template std::int64_t get_or<std::int64_t>(const attributes&, const std::string&, std::int64_t);
template double get_or<double>(const attributes&, const std::string&, double);
template std::string get_or<std::string>(const attributes&, const std::string&, std::string);

}  // namespace troupe
