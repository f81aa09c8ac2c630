// SPDX-License-Identifier: BSD-3-Clause
#include "command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>

#include <c10/util/Exception.h>

#include <troupe/actors/certificates/kit.hpp>
#include <troupe/actors/node_options.hpp>
#include <troupe/actors/process_limits.hpp>
#include <troupe/actors/support/texts.hpp>

#include "cluster_file.hpp"

namespace troupe::apps {

namespace {

constexpr int failed = 1;
constexpr int wrong_arguments = 2;

/// Returns the edit distance of two words: how many letters have to be changed, added, removed or swapped with a neighbour.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

/// Returns "; did you mean X?" with the most similar known word; empty if no known word is similar.
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  auto nearest =
    std::min_element(known.begin(), known.end(), [&](auto& a, auto& b) { return distance(word, a) < distance(word, b); });
  if (nearest == known.end() || distance(word, *nearest) > std::max<std::size_t>(1, word.size() / 3)) return "";
  return "; did you mean " + *nearest + "?";
}

std::vector<std::string> subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> options(const CLI::App& app) {
  std::vector<std::string> names;
  for (auto* option : app.get_options())
    for (auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

void say(const std::string& text) noexcept { std::fprintf(stderr, "troupe: %s\n", text.c_str()); }

std::string flattened(const std::string& text) {
  std::string line;
  for (char c : text)
    if (c != '\n' && c != '\r' && c != '\t')
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

int refuse(const CLI::App& app, const CLI::ParseError& mistake) {
  const auto* deepest = &app;
  auto command = app.get_name();
  for (auto parsed = app.get_subcommands(); !parsed.empty(); parsed = deepest->get_subcommands()) {
    deepest = parsed.front();
    command += " " + deepest->get_name();
  }
  const auto& where = *deepest;
  auto left = app.remaining(true);
  std::string text = flattened(mistake.what());
  constexpr std::string_view of_flag = "Could not convert: ";  // the beginning of CLI11's text for "--trace=yes"
  if (const auto equals = text.find(" = "); text.starts_with(of_flag) && equals != std::string::npos)
    text = text.substr(of_flag.size(), equals - of_flag.size()) + ": expected no value, got '" + text.substr(equals + 3) + "'";
  if (mistake.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !left.empty()) {
    bool option = left.front().starts_with('-');
    text =
      (option ? "unknown option '" : "unexpected argument '") + left.front() + "'" + suggestion(left.front(), options(where));
  }
  if (const auto names = subcommands(where); deepest != &app && !names.empty())
    text = left.empty() || left.front().starts_with('-') ? "expected a subcommand: " + support::joined_by_or(names)
                                                         : "unknown subcommand '" + left.front() + "'; expected " +
                                                             support::joined_by_or(names) + suggestion(left.front(), names);
  if (const auto missing = text.find(": 1 required "); missing != std::string::npos)
    text = text.substr(0, missing) + ": expected a value after it";
  for (auto* option : where.get_options())
    if (option->get_expected_max() == 1 && option->get_items_expected_max() == 1 && option->count() > 1)
      text = option->get_name() + " is given " + std::to_string(option->count()) + " times, expected once";
  say(text + " (see '" + command + " --help')");
  return wrong_arguments;
}

int parse_and_run(CLI::App& app, int argc, const char* const* argv) {
  auto names = subcommands(app);
  if (argc < 2) {
    say("expected a subcommand: " + support::joined_by_or(names) + " (see '" + app.get_name() + " --help')");
    return wrong_arguments;
  }
  std::string first = argv[1];
  if (!first.starts_with('-') && std::find(names.begin(), names.end(), first) == names.end()) {
    say("unknown subcommand '" + first + "'; expected " + support::joined_by_or(names) + suggestion(first, names) + " (see '" +
        app.get_name() + " --help')");
    return wrong_arguments;
  }
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::RuntimeError& status) {
    return status.get_exit_code();
  } catch (const CLI::ParseError& mistake) {
    return refuse(app, mistake);
  }
}

/// Turns a check that throws std::runtime_error into a check that returns the text of the error; empty if the check passes.
template <class Check>
std::function<std::string(const std::string&)> refusal(Check check) {
  return [check](const std::string& text) -> std::string {
    try {
      check(text);
    } catch (const std::runtime_error& mistake) {
      return mistake.what();
    }
    return "";
  };
}

void add(CLI::App& command, settings& to, const node_option& each, const char* group) {
  const std::string name(each.name);
  const std::string help(each.help);
  const auto set = [&to, &each](const std::string& text) { each.set(to, text); };
  if (each.is_flag()) {
    command
      .add_flag_callback(
        name, [set] { set({}); }, help)
      ->group(group);
    return;
  }
  auto* const added = each.may_repeat() ? command.add_option_function<std::vector<std::string>>(
                                            name,
                                            [set](const auto& all) {
                                              for (const auto& text : all) set(text);
                                            },
                                            help)
                                        : command.add_option_function<std::string>(name, set, help);
  const auto bounds = each.bounds();
  added->check(CLI::Validator([&each](const std::string& text) { return each.wrong(text); }, "", name))
    ->type_name(std::string(each.value) + (bounds.empty() ? "" : ":" + bounds))
    ->default_str(support::joined(each.texts(to), ","))
    ->group(group);
}

}  // namespace

std::string one_line(const std::exception& failure) {
  if (auto* of_torch = dynamic_cast<const c10::Error*>(&failure)) return flattened(of_torch->what_without_backtrace());
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) return "out of memory";
  auto text = flattened(failure.what());
  const auto* of_system = dynamic_cast<const std::system_error*>(&failure);
  if (of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again)
    text = "the system gives no further thread or process (" + text + "): " + limits_on_threads() + "; raise the limit";
  return text;
}

int run_command_line(CLI::App& app, int argc, const char* const* argv) noexcept {
  try {
    return parse_and_run(app, argc, argv);
  } catch (const std::exception& failure) {
    say(one_line(failure));
  } catch (...) {
    say("failed by an exception of an unknown type");
  }
  return failed;
}

int status_with_output(int status) noexcept {
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  std::fflush(nullptr);
  if (written || status != 0) return status;
  say("expected to write to stdout, but not all of it could be written (is the disk full, or its reader gone?)");
  return failed;
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  const auto check = [names](const std::string& text) {
    const bool is_there = std::find(names.begin(), names.end(), text) != names.end();
    return is_there ? "" : "expected " + support::joined_by_or(names) + ", got " + text;
  };
  return CLI::Validator(check, "{" + support::joined(names, ",") + "}", "");
}

CLI::Validator host_and_port() { return CLI::Validator(refusal(parse_address), "", "host_and_port"); }

CLI::Validator node_name() {
  return CLI::Validator(refusal([](const std::string& text) { check_node_name(text, "the name"); }), "", "node_name");
}

void add_node_options(CLI::App& command, settings& to, option_names names, const char* group) {
  for (const auto name : names) {
    const auto& option = node_option_named(name);
    add(command, to, option, group != nullptr ? group : option.group.empty() ? "Options" : option.group.data());
  }
  auto* const kit = command.get_option_no_throw("--certificates");
  for (const auto* name : {"--revoked", "--policy"})
    if (auto* const with_kit = command.get_option_no_throw(name)) with_kit->needs(kit);
  if (auto* const without = command.get_option_no_throw("--insecure"); without != nullptr && kit != nullptr)
    without->excludes(kit);
}

std::vector<std::string> node_arguments(const settings& of, option_names names) {
  std::vector<std::string> result;
  for (const auto name : names)
    for (auto& word : node_option_named(name).arguments(of)) result.push_back(std::move(word));
  return result;
}

std::string name_in_kit(const settings& of) {
  return of.certificates.empty() ? of.name : certificates::read_kit(of.certificates).identity.node;
}

}  // namespace troupe::apps
