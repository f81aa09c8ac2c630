// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/logging/line_descriptor_test.cpp, tests/actors/logging/line_text_test.cpp, tests/actors/logging/line_limit_test.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::logging {

/// Limits the lines of each kind, so that a flood of one event does not fill the disk: `most_at_once` lines at once, and after
/// that one line each `refill_ns`. One thread at a time may use line_limit.
///   LL-1  lines of one kind never hold back lines of another kind. But if `most_kinds` kinds have had lines lately, all
///         further kinds of one call site count as one kind.
///   LL-2  every line is either admitted or counted. Each count is returned once: with the next line that is admitted, or by
///         held().
class line_limit {
 public:
  static constexpr double most_at_once = 100;
  static constexpr std::int64_t refill_ns = 1'000'000'000;
  static constexpr std::size_t most_kinds = 4096;

  /// The kind of a line. `call_site`: an address that stands for the line of code that logs. `about`: a number for the peer or
  /// thing that the line is about; 0: only `call_site` counts.
  struct kind {
    const void* call_site = nullptr;
    std::uint64_t about = 0;
    bool operator==(const kind&) const = default;
  };

  struct verdict {
    bool admitted = false;
    std::uint64_t left_out = 0;  // lines of this kind that were held back since the last admitted line
  };

  /// Decides whether a line may be written.
  verdict ask(kind what, std::int64_t now_ns);
  /// Returns the counts that were not returned yet, and sets them to 0.
  std::uint64_t held();

 private:
  struct bucket {
    double tokens = most_at_once;
    std::int64_t filled_ns = 0;
    std::uint64_t left_out = 0;
  };

  struct hash {
    std::size_t operator()(const kind& what) const noexcept {
      return std::hash<const void*>()(what.call_site) ^ std::hash<std::uint64_t>()(what.about * 0x9e37'79b9'7f4a'7c15);
    }
  };

  static double tokens_at(const bucket& its, std::int64_t now_ns);
  void forget_quiet(std::int64_t now_ns);

  std::unordered_map<kind, bucket, hash> kinds_;
};

/// The text as a part of one line. The result is cut after `most` bytes; a note then says how many bytes of the text are
/// missing.
///   LX-1  the result has no control character, no Unicode line break, no mark that changes the direction of writing, and only
///         valid UTF-8. Other characters and bytes are escaped: \n, \r, \t, \x1b, \u{202e}.
std::string one_line(std::string_view text, std::size_t most);

/// The text, which has to be one line (see one_line), as a string of JSON with its quotes.
std::string json_string(std::string_view line);

/// The descriptor to which the lines of a log are written: stderr or a file. One thread at a time may use line_descriptor. Pre:
/// this thread has blocked the signal SIGPIPE.
///   WL-1  a write waits for a slow reader for at most `patience`. After such a wait no write waits at all, until the reader
///         has read something. Lines that could not be written are counted.
///   WL-2  lines of up to 4,096 bytes from several processes never mix, whether they share a file or a pipe.
///   WL-3  stderr stays blocking or non-blocking, as it was, for the other programs that write to it.
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
    blocking       // stderr could not be opened again: the line waits until stderr is writable
  };

  line_descriptor(support::owned_descriptor to, kind what) : to_(std::move(to)), kind_(what) {}
  bool write_all(std::string_view text) noexcept;
  bool wait_until_writable() noexcept;
  bool is_writable(std::chrono::milliseconds limit) const noexcept;

  support::owned_descriptor to_;
  kind kind_ = kind::non_blocking;
  bool is_stuck_ = false;  // the reader did not read within `patience`
  bool is_cut_ = false;    // the last line was written only in part
  std::uint64_t lost_ = 0;
};

}  // namespace troupe::logging
