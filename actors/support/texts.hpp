// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe::support {

/// All texts in one, with the separator between each two.
inline std::string joined(const std::vector<std::string>& texts, const char* separator = ", ") {
  std::string all;
  for (const auto& each : texts) all.append(all.empty() ? "" : separator).append(each);
  return all;
}

/// Adds a name to a list of names for an error text: 'a', 'b'.
inline void add_quoted(std::string& names, std::string_view name) {
  names.append(names.empty() ? "'" : ", '").append(name).append("'");
}

/// "debug, info or warn"; empty if there are no words.
inline std::string joined_by_or(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list.append(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ").append(words[i]);
  return list;
}

/// A number with its noun for an error text: "no tensors", "1 tensor", "2 tensors".
inline std::string counted(std::size_t number, const std::string& noun) {
  if (number == 1) return "1 " + noun;
  return (number == 0 ? "no" : std::to_string(number)) + " " + noun + "s";
}

/// The error for a tensor that is missing: tensor `index` was asked for, and `there` tensors are present. `expectation` is the
/// beginning of the text ("'forward' expected").
inline error missing_tensor(std::size_t index, std::size_t there, const std::string& expectation) {
  return {errc::misuse,
          expectation + " at least " + counted(index + 1, "tensor") + ", got " + (there == 0 ? "none" : std::to_string(there))};
}

/// A time in milliseconds for a text: "12.345 ms".
inline std::string duration_text(std::int64_t ns) { return fixed_text(static_cast<double>(ns) / 1e6, 3) + " ms"; }

/// The text of an exception; without the backtrace for an exception of libtorch.
std::string text_of(const std::exception& reason);
std::string text_of(const std::exception_ptr& reason);

/// A time in seconds for an error text: "0.25 s".
inline std::string seconds_text(std::chrono::milliseconds time) {
  return number_text(static_cast<double>(time.count()) / 1e3) + " s";
}

}  // namespace troupe::support
