// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <troupe/actors/settings.hpp>

namespace troupe::logging {

/// The log of a node: one line for each event, with time, level, node and room. Copies write to the same log. Any thread may
/// use node_log. One thread writes the lines of all nodes of the process; if the system gives no such thread, the thread that
/// logs writes its lines itself.
///   NL-1  a line whose level is off costs a load and a branch; its text is not made.
///   NL-2  a thread that logs never waits for the reader of the log, unless the system gives no thread that writes. If more
///         than `most_waiting` lines wait to be written, the oldest are lost, and the log says how many.
///   NL-3  of a flood of one event only a part is written, and the log says how many lines were left out. Lines of level debug
///         have no such limit. Lines of one call site that are `about` different things are different events.
///   NL-4  an event is one line of at most 4,096 bytes, whatever its text holds.
///   NL-5  when the last log of the process is destroyed, all lines have been written, except lines that a slow reader did not
///         read in time.
class node_log {
 public:
  static constexpr std::size_t most_waiting = 1024;

  /// A log that writes nothing.
  node_log() = default;
  /// A log of lines from level `least` on. `file`: empty for stderr. Throws troupe::error (misuse) if the file can't be
  /// written.
  node_log(std::string node, severity least, const std::string& file, line_format form = line_format::text);

  bool is_on(severity level) const noexcept { return level >= least_; }

  /// `text`: a function that returns the text. The function is called only if the level is on. `about`: a function that returns
  /// a number for the peer or thing that the line is about. Each number has a limit of its own (NL-3): so a flood about one
  /// peer does not hide lines about other peers.
  template <class Text>
  void debug(std::string_view room, const Text& text) const noexcept {
    write(severity::debug, room, text);
  }
  template <class Text>
  void info(std::string_view room, const Text& text) const noexcept {
    write(severity::info, room, text);
  }
  template <class Text, class About>
  void info(std::string_view room, const Text& text, const About& about) const noexcept {
    write(severity::info, room, text, about);
  }
  template <class Text>
  void warn(std::string_view room, const Text& text) const noexcept {
    write(severity::warn, room, text);
  }
  template <class Text, class About>
  void warn(std::string_view room, const Text& text, const About& about) const noexcept {
    write(severity::warn, room, text, about);
  }
  template <class Text>
  void error(std::string_view room, const Text& text) const noexcept {
    write(severity::error, room, text);
  }

 private:
  class writer;

  struct all {
    std::uint64_t operator()() const noexcept { return 0; }
  };

  template <class Text, class About = all>
  void write(severity level, std::string_view room, const Text& text, const About& about = {}) const noexcept {
    if (is_on(level)) [[unlikely]]
      add(level, room, text, about);
  }

  // `Text` is the type of a lambda: each line of code that logs has its own type, and so its own `call_site`.
  template <class Text, class About>
  [[gnu::noinline, gnu::cold]] void add(severity level, std::string_view room, const Text& text,
                                        const About& about) const noexcept {
    static char call_site;
    try {
      if (admits(level, room, &call_site, about())) put(level, room, text());
    } catch (...) {
      // A text that could not be made must not make the caller fail.
    }
  }
  bool admits(severity level, std::string_view room, const void* call_site, std::uint64_t about) const;
  void put(severity level, std::string_view room, std::string_view text) const;

  severity least_ = severity::off;
  std::shared_ptr<writer> writer_;  // null if the log writes nothing
};

}  // namespace troupe::logging
