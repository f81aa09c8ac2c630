// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/settings_test.cpp, tests/actors/node_options_test.cpp
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <troupe/actors/settings.hpp>

namespace troupe {

/// A setting of a node as an option of a command line: `--heartbeat-ms=250`. One table (node_options()) names all options.
/// settings(argc, argv), check(), `troupe node`, the fields of a cluster file and docs/options.md are made from this table.
///   NO-1  command lines and cluster files have the same bounds, those of set(). check() accepts each value that set() accepts,
///         but may refuse a combination of values.
///   NO-2  texts() gives back each value that set() has made: set() with these texts gives new `settings` the same value.
struct node_option {
  /// A whole number. The setting is `unit` times the number of the option.
  struct number {
    std::int64_t (*get)(const settings&);
    void (*set)(settings&, std::int64_t);
    std::int64_t least;  // 0 or 1; for the option and for the setting
    std::int64_t most;   // for the option; a setting in bytes may be larger
    std::int64_t unit = 1;
    const char* unit_of_setting = "";
  };
  struct text {
    std::string settings::*where;
    std::string_view expected = {};
    bool (*is_right)(const std::string& text) = nullptr;  // null: every text is right
  };
  struct choice {
    std::string (*get)(const settings&);
    void (*set)(settings&, const std::string& name);
    std::vector<std::string> names;
  };
  /// An option that may be given more than once.
  struct list {
    std::vector<std::string> (*get)(const settings&);
    void (*add)(settings&, const std::string&);
  };
  /// An option without a value. If the option is given, the setting becomes `value`.
  struct flag {
    bool settings::*where;
    bool value = true;
  };

  std::string_view name;     // "--heartbeat-ms"
  std::string_view setting;  // the member of settings
  std::string_view value;    // stands for the value in the help: "MILLISECONDS"; empty: a flag
  std::variant<number, text, choice, list, flag> kind;
  std::string_view help;
  std::string_view group = {};

  bool is_flag() const noexcept { return std::holds_alternative<flag>(kind); }
  bool may_repeat() const noexcept { return std::holds_alternative<list>(kind); }
  /// What is wrong with the text of a value: "expected …, got '…'". Empty if nothing is wrong; always empty for a flag.
  std::string wrong(const std::string& value_text) const;
  /// Reads the text of a value into `to`. The text of a flag is not used. Throws troupe::error (misuse) that names the option
  /// if the text is wrong.
  void set(settings& to, const std::string& value_text) const;
  /// The texts with which set() gives the setting the value that it has in `of`. Empty for a flag that is not set and for an
  /// empty text.
  std::vector<std::string> texts(const settings& of) const;
  /// The arguments of a command line that give the setting the value that it has in `of`.
  std::vector<std::string> arguments(const settings& of) const;
  /// "1 to 1024", or the names to choose from; empty: any text.
  std::string bounds() const;
  /// What a value is expected to be: "a whole number from 1 to 1024". Empty: any text is right, as for a list.
  std::string expected() const;
  /// The field of a cluster file: "heartbeat_ms"; of `--no-direct-memory`: "direct_memory".
  std::string field() const;
};

/// All options, in the order of `troupe node --help`.
std::span<const node_option> node_options();
/// The option with this name. Pre: the table has it.
const node_option& node_option_named(std::string_view name);

}  // namespace troupe
