// SPDX-License-Identifier: BSD-3-Clause
#include "apps/node_arguments.hpp"

#include <CLI/CLI.hpp>

#include <troupe/actors/certificates/kit.hpp>
#include <troupe/actors/node_options.hpp>
#include <troupe/actors/support/texts.hpp>

namespace troupe::apps {

namespace {

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
