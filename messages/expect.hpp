// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace troupe {

/// Ends the process with a line on stderr that has the condition, the file, the line and the function.
[[noreturn, gnu::cold]] inline void end_for_broken_condition(const char* condition, std::string_view file, int line,
                                                             const char* function) noexcept {
  for (const std::string_view folder : {"/messages/", "/engine/", "/devices/", "/actors/", "/apps/"})
    if (const auto at = file.rfind(folder); at != std::string_view::npos) file = file.substr(at + 1);
  std::fprintf(stderr, "troupe: a fault of the program: expected %s, at %.*s:%d in %s\n", condition,
               static_cast<int>(file.size()), file.data(), line, function);
  std::abort();
}

}  // namespace troupe

/// Checks, in every build, a condition that a caller has to meet (`Pre:`), or that the state of a class always meets. A broken
/// condition ends the process, because going on would lose data silently. Code in which nanoseconds matter uses `assert` of
/// <cassert> instead, which only the presets dev, asan, tsan and fuzz check.
// Only a macro has the text of the condition.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define TROUPE_EXPECT(condition) \
  ((condition) ? static_cast<void>(0) : ::troupe::end_for_broken_condition(#condition, __FILE__, __LINE__, __func__))
