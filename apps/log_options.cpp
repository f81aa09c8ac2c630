// SPDX-License-Identifier: BSD-3-Clause
#include "apps/log_options.hpp"

#include <CLI/CLI.hpp>

namespace troupe::apps {

void log_options::add_to(CLI::App& command) {
  command.add_option("--log-level", level, "The least that nodes log")
    ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}))
    ->capture_default_str()
    ->group("Log");
  command.add_option("--log-file", file, "File to append the log to, instead of stderr")
    ->type_name("FILE")
    ->default_str("")
    ->group("Log");
  command.add_option("--log-format", format, "Lines for people, or an object of JSON in each line")
    ->check(CLI::IsMember({"text", "json"}))
    ->capture_default_str()
    ->group("Log");
}

void log_options::apply_to(settings& of_node) const {
  of_node.log_level = severity_named(level);
  of_node.log_file = file;
  of_node.log_format = line_format_named(format);
}

std::vector<std::string> log_options::arguments() const {
  std::vector<std::string> result{"--log-level", level};
  if (!file.empty()) result.insert(result.end(), {"--log-file", file});
  if (format != "text") result.insert(result.end(), {"--log-format", format});
  return result;
}

}  // namespace troupe::apps
