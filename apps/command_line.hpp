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

/// Parses the arguments, runs the callback of the subcommand, and returns the exit status. An exception of the callback is a
/// failure. A callback throws CLI::RuntimeError to set the exit status without a text.
///   CL-1  the status is 0 if the command was done or help was asked for, 1 if it failed, and 2 if arguments were wrong.
///   CL-2  a failure prints one line on stderr, "troupe: <reason>". For a wrong argument, the line names the argument and the
///         --help to read.
int run_command_line(CLI::App& app, int argc, const char* const* argv) noexcept;

/// Flushes stdout. Returns the exit status for a program whose work ended with `status`.
///   CL-3  if output could not be written, status 0 becomes 1, and a line on stderr says so.
int status_with_output(int status) noexcept;

/// Returns the text of an exception on one line, without libtorch's stack trace.
std::string one_line(const std::exception& failure);

/// Returns a check that accepts only numbers from `least` to `most`. Help and errors show the range as `shown`.
template <class T>
CLI::Validator within(T least, T most, const std::string& shown) {
  return CLI::Validator(
    [=](const std::string& text) -> std::string {
      T value{};
      errno = 0;
      const bool read = CLI::detail::lexical_cast(text, value);
      const bool cut = std::is_integral_v<T> && errno == ERANGE;  // too large for T: CLI11 took the nearest number
      if (read && !cut && value >= least && value <= most) return "";
      const bool is_whole = text.find_first_not_of("+-0123456789") == std::string::npos;
      return (std::is_integral_v<T> && !is_whole ? "expected a whole number, " : "expected ") + shown + ", got " + text;
    },
    shown, "");
}

/// As within(); help and errors show the range as in "1 to 64".
template <class T>
CLI::Validator between(T least, T most) {
  return within(least, most, (classic_ostringstream() << std::fixed << std::setprecision(0) << least << " to " << most).str());
}

/// Returns a check that accepts these names. Help shows them as in "{exact,bf16}".
CLI::Validator one_of(const std::vector<std::string>& names);

/// Returns a check that accepts the texts that troupe::parse_address() accepts.
CLI::Validator host_and_port();

/// Returns a check that accepts the names that check_node_name() accepts.
CLI::Validator node_name();

using option_names = std::span<const std::string_view>;

/// The options with which a process proves to nodes who it is (`proof`), and `--policy`, which only commands that start nodes
/// have.
inline constexpr std::array<std::string_view, 4> proof_and_policy{"--certificates", "--revoked", "--insecure", "--policy"};
inline constexpr option_names proof(proof_and_policy.data(), 3);
inline constexpr std::array<std::string_view, 3> log_options{"--log-level", "--log-file", "--log-format"};

/// Adds the node options in `names` (troupe/actors/node_options.hpp) to a command. `to` gets their values. Its values before
/// the call are the defaults that help shows. `to` has to live as long as the command. `group`: the group of the options in the
/// help; null: the usual group of each option.
void add_node_options(CLI::App& command, settings& to, option_names names, const char* group = nullptr);

/// Returns the arguments that give the options in `names` the values that they have in `of`.
std::vector<std::string> node_arguments(const settings& of, option_names names);

/// Returns the name of the node for which the kit in `of.certificates` was made; without a kit, `of.name`. Throws troupe::error
/// if the kit can't be read.
std::string name_in_kit(const settings& of);

}  // namespace troupe::apps
