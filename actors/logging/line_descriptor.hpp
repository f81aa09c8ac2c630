// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::logging {

/// Where the lines of a log go: stderr, or a file. Used by one thread at a time, which has the signal SIGPIPE blocked.
///   WL-1  a write waits for a slow reader at most `patience`, and after that not at all until the reader has read something. Lines
///         that did not fit meanwhile are counted.
///   WL-2  lines of up to 4,096 bytes from several processes never mix, whether they share a file or a pipe.
///   WL-3  how stderr blocks stays as it is for everybody else who writes there.
class line_descriptor {
 public:
  static constexpr std::chrono::milliseconds patience{100};

  /// Drops all lines if stderr is closed.
  static line_descriptor standard_error();
  /// Appends to the file; makes it if there is none. Throws troupe::error (misuse) that names the file and the reason.
  static line_descriptor append_to(const std::string& path);

  /// False if the line was lost.
  bool write(std::string_view line) noexcept;
  /// Lines that were lost since the last one that was written.
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  line_descriptor(support::owned_descriptor to, bool is_socket) : to_(std::move(to)), is_socket_(is_socket) {}
  bool write_all(std::string_view text) noexcept;
  bool wait_for_room() noexcept;

  support::owned_descriptor to_;
  bool is_socket_ = false;
  bool is_stuck_ = false;  // the reader did not read within `patience`
  bool is_cut_ = false;    // a line was written in part
  std::uint64_t lost_ = 0;
};

}  // namespace troupe::logging
