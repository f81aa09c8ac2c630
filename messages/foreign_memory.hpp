// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <troupe/messages/errors.hpp>

namespace troupe {

struct memory_mark;

/// The memory of another process on this machine, as a tensor_offer names it. Reading needs the rights that a debugger needs.
///   FM-1  nothing counts as read unless the process's memory held the mark when its elements were read, in one system call: the
///         process is the one that was given the mark, also when numbers of processes were used again.
///   FM-2  this process's own memory is refused.
struct foreign_memory {
  std::uint64_t process = 0;  // its number, pid
  std::uint64_t mark = 0;     // where the mark lies

  /// Copies [address, address + bytes); none, or why not: `refused` where the process can't be read or is another one, else
  /// `malformed_message`. What was copied before an error stays.
  std::optional<error> read(const memory_mark& given, std::uint64_t address, void* to, std::uint64_t bytes) const;
};

/// The number of this process.
std::uint64_t this_process() noexcept;

}  // namespace troupe
