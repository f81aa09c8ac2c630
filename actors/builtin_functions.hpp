// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include <troupe/messages/attributes.hpp>

namespace troupe {

class function_table;
class node;
class object_store;

/// Registers the functions behind remote modules and optimizers ("troupe.create", "troupe.method", "troupe.optimizer.step",
/// ...). Called once, by the node.
void add_builtin_functions(node& here);

/// The same without a node.
void add_builtin_functions(function_table& functions, object_store& objects);

/// Names of what these functions are given beside the user's own values.
namespace value_names {
inline constexpr auto type = "troupe.type";    // of module
inline constexpr auto owner = "troupe.owner";  // node that an object belongs to
inline constexpr auto method = "troupe.method";
inline constexpr auto object = "troupe.object";  // number of an object
inline constexpr auto name = "troupe.name";      // of a parameter
inline constexpr auto to = "troupe.to";          // node that an object is lent to
inline constexpr auto ticket = "troupe.ticket";  // of a loan
}  // namespace value_names

/// A call as people know it, for traces and errors: the method where it is a module's, else the function.
std::string label_of(const std::string& function, const attributes& values);

/// A number of 64 bits as an attribute, and back.
inline attribute to_attribute(std::uint64_t number) { return std::bit_cast<std::int64_t>(number); }
inline std::uint64_t number_from(const attributes& values, const std::string& name) {
  return std::bit_cast<std::uint64_t>(get<std::int64_t>(values, name));
}

}  // namespace troupe
