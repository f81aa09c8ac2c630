// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::logging {

/// The descriptor that the lines of a log are written to: stderr or a file. One thread at a time may use it. Pre: this thread
/// has blocked the signal SIGPIPE.
///   WL-1  a write waits for a slow reader for at most `patience`. After such a wait no write waits at all, until the reader
///         has read something. Lines that could not be written are counted.
///   WL-2  lines of up to 4,096 bytes from several processes never mix, whether they share a file or a pipe.
///   WL-3  stderr stays blocking or non-blocking, as it was, for all others that write to it.
class line_descriptor {
 public:
  static constexpr std::chrono::milliseconds patience{100};

  /// Writes to stderr. Drops all lines if stderr is closed. `opened_by`: the path that opens stderr again.
  static line_descriptor standard_error(const char* opened_by = "/proc/self/fd/2");
  /// Appends to the file, and makes the file if there is none. Throws troupe::error (misuse) with the file and the reason.
  static line_descriptor append_to(const std::string& path);

  /// Writes a line. False if the line was lost.
  bool write(std::string_view line) noexcept;
  /// The number of lines that were lost since the last line that was written.
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  enum class kind {
    non_blocking,  // the system's write never waits; a file counts as non-blocking, because it has no slow reader
    socket,        // MSG_DONTWAIT makes each write non-blocking
    blocking       // stderr could not be opened again: the line waits for room before its write
  };

  line_descriptor(support::owned_descriptor to, kind what) : to_(std::move(to)), kind_(what) {}
  bool write_all(std::string_view text) noexcept;
  bool wait_for_room() noexcept;
  bool has_room(std::chrono::milliseconds limit) const noexcept;

  support::owned_descriptor to_;
  kind kind_ = kind::non_blocking;
  bool is_stuck_ = false;  // the reader did not read within `patience`
  bool is_cut_ = false;    // the last line was written only in part
  std::uint64_t lost_ = 0;
};

}  // namespace troupe::logging
