// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/attributes.hpp>

#include <troupe/messages/errors.hpp>

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
