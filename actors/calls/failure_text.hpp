// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::calls {

/// The most nested calls that the text of an error names.
inline constexpr std::size_t most_calls_told = 8;

/// The text of the error of a call of `label` on node `node`. If a nested call made the call fail, `reason` is the
/// failure_text() of the nested call.
///   FT-1  of nested calls the text names at most `most_calls_told`. If there are more, the text names the outermost and the
///         innermost call, and the number of calls between the two. The innermost reason stays whole.
inline std::string failure_text(const std::string& label, const std::string& node, const std::string& reason) {
  constexpr std::string_view head = "call of '";
  constexpr std::string_view tail = "' failed: ";
  constexpr std::string_view gap = "through ";
  constexpr std::string_view gap_end = " more: ";
  const std::string_view all = reason;
  std::uint64_t told = 0;    // calls that `reason` names
  std::uint64_t untold = 0;  // calls that `reason` counts but does not name
  std::size_t innermost = 0;
  for (std::size_t at = 0; all.substr(at).starts_with(head);) {
    const auto end = all.find(tail, at);
    if (end == all.npos) break;
    ++told;
    innermost = at;
    at = end + tail.size();
    if (!all.substr(at).starts_with(gap)) continue;
    const auto digits = at + gap.size();
    const auto after = all.find_first_not_of("0123456789", digits);
    if (after == all.npos || after == digits || after - digits > 6 || !all.substr(after).starts_with(gap_end)) continue;
    untold += std::stoul(reason.substr(digits, after - digits));
    at = after + gap_end.size();
  }
  const auto outermost = std::string(head) + label + "' on node '" + node + std::string(tail);
  if (untold == 0 && told < most_calls_told) return outermost + reason;
  return outermost + std::string(gap) + std::to_string(untold + told - 1) + std::string(gap_end) + reason.substr(innermost);
}

}  // namespace troupe::calls
