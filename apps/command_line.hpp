// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/command_line_test.cpp, tests/apps/cli_test.cpp, tests/apps/node_command_test.cpp, tests/apps/train_test.cpp, tests/hosts/proving_test.cpp
#pragma once

#include <array>
#include <cerrno>
#include <exception>
#include <iomanip>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

#include <troupe/actors/settings.hpp>
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

using option_names = std::span<const std::string_view>;

/// The options by which a node, or a command that asks a node, proves who it is; `--policy` is for commands that start nodes.
inline constexpr std::array<std::string_view, 4> proof_and_policy{"--certificates", "--revoked", "--insecure", "--policy"};
inline constexpr option_names proof(proof_and_policy.data(), 3);
inline constexpr std::array<std::string_view, 3> log_options{"--log-level", "--log-file", "--log-format"};

/// Adds options of a node (troupe/actors/node_options.hpp) to a command. `to`: gets the values, and has the defaults that the
/// help shows; it has to live as long as the command. `group`: the group of the options in the help; null: the usual group of
/// each.
void add_node_options(CLI::App& command, settings& to, option_names names, const char* group = nullptr);

/// The arguments of a command for the options in `names`, with the values of these options in `of`.
std::vector<std::string> node_arguments(const settings& of, option_names names);

/// The name of the node that the kit is for; the settings' own name without a kit. Throws troupe::error if the kit can't be
/// read.
std::string name_in_kit(const settings& of);

}  // namespace troupe::apps
