// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include <troupe/messages/errors.hpp>

namespace troupe {

struct memory_mark;

/// The memory of another process on this machine, as described in a tensor_offer. Reading that memory needs the rights of a
/// debugger.
///   FM-1  elements count as read only if the same system call found the mark (memory_mark) in that process's memory. So the
///         elements come from the process that was given the mark, not from a later process with the same number.
///   FM-2  a read of the memory of the calling process is refused.
struct foreign_memory {
  std::uint64_t process = 0;  // process number (pid)
  std::uint64_t mark = 0;     // address of the mark

  /// Copies [address, address + bytes). Returns no error on success; `refused` if the process cannot be read or is not the one
  /// with the mark; otherwise `malformed_message`. After an error, `to` may hold a part of the bytes.
  std::optional<error> read(const memory_mark& given, std::uint64_t address, void* to, std::uint64_t bytes) const;
};

/// Returns the process number (pid) of this process.
std::uint64_t this_process() noexcept;

}  // namespace troupe
