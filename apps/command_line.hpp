// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cerrno>
#include <exception>
#include <iomanip>
#include <string>
#include <type_traits>

#include <CLI/CLI.hpp>

#include <troupe/messages/plain_text.hpp>

namespace troupe::apps {

/// Parses the arguments and runs the callback of the subcommand. Any exception of a callback is a failure. CLI::RuntimeError
/// gives an exit status and prints no text. Returns the exit status.
///   CL-1  status 0: done, or help was asked for. 1: failed. 2: wrong arguments.
///   CL-2  a failure prints one line on stderr, "troupe: <what>". The line for a wrong argument names the argument and the
///         --help to read.
int run_command_line(CLI::App& app, int argc, const char* const* argv) noexcept;

/// Flushes stdout. Returns the exit status for a program whose work ended with `status`.
///   CL-3  if output could not be written, a success becomes a failure, with a line on stderr.
int status_with_output(int status) noexcept;

/// The text of an exception on one line, without libtorch's stack trace.
std::string one_line(const std::exception& failure);

/// A check that refuses a text that is no number from `least` to `most`. Help and errors show the range as `shown`.
template <class T>
CLI::Validator within(T least, T most, const std::string& shown) {
  return CLI::Validator(
    [=](const std::string& text) -> std::string {
      T value{};
      errno = 0;
      const bool read = CLI::detail::lexical_cast(text, value);
      const bool cut = std::is_integral_v<T> && errno == ERANGE;  // CLI11 has taken the nearest possible number
      if (read && !cut && value >= least && value <= most) return "";
      return "expected " + shown + ", got " + text;
    },
    shown, "");
}

/// A range check that shows the range as "1 to 64".
template <class T>
CLI::Validator between(T least, T most) {
  return within(least, most, (plain_stream() << std::fixed << std::setprecision(0) << least << " to " << most).str());
}

/// A check that refuses a text that troupe::parse_address refuses.
CLI::Validator host_and_port();

/// A check that refuses a text that check_node_name refuses.
CLI::Validator node_name();

}  // namespace troupe::apps
