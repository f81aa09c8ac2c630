// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/node_options.hpp>

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <troupe/messages/errors.hpp>

#include "support/contains.hpp"

namespace {

using troupe::node_option;
using troupe::settings;

/// Texts that are right for the option, the largest and the smallest value among them.
std::vector<std::string> right_values(const node_option& option) {
  if (const auto* number = std::get_if<node_option::number>(&option.kind))
    return {std::to_string(number->least), std::to_string(number->most)};
  if (const auto* choice = std::get_if<node_option::choice>(&option.kind)) return choice->names;
  if (option.name == "--device-map") return {"b:cpu=cuda:1"};
  if (option.name == "--join") return {"h1:4001"};
  if (option.name == "--metrics") return {"9100", "0.0.0.0:9100"};
  return {"h1"};
}

std::vector<std::string> wrong_values(const node_option& option) {
  if (const auto* number = std::get_if<node_option::number>(&option.kind))
    return {std::to_string(number->least - 1), std::to_string(number->most + 1), "1.5", "", "1 "};
  if (std::holds_alternative<node_option::choice>(option.kind)) return {"", "other"};
  if (option.may_repeat()) return {"", "x"};
  return {};
}

std::string cell(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

std::string row(const node_option& option) {
  const auto defaults = option.texts({});
  const auto* flag = std::get_if<node_option::flag>(&option.kind);
  const auto field = option.name == "--join" ? "" : option.may_repeat() ? std::string(option.setting) : option.field();
  std::string value(option.value);
  if (const auto bounds = option.bounds(); !bounds.empty()) value += ", " + bounds;
  return "| " + cell(std::string(option.name)) + " | " + value + " | " +
         (flag != nullptr || defaults.empty() ? "" : cell(defaults.front())) + " | " + cell(std::string(option.setting)) +
         (flag != nullptr ? (flag->value ? " = true" : " = false") : "") + " | " + cell(field) +
         (flag != nullptr ? (flag->value ? ": true" : ": false") : "") + " | " + std::string(option.help) + " |\n";
}

std::string options_page() {
  std::string text = R"(# Options of a node

Every setting of a node has one name in each place where it is given: in the command line of `troupe node` and of programs that pass their
arguments to `troupe::settings(argc, argv)`, in C++ as a member of `troupe::settings`, and as a field of a node in a cluster file of
`troupe launch`. Bounds are the same everywhere. In C++ times are durations of std::chrono, and limits are bytes. The page is made from the table of options
(`actors/node_options.cpp`).

| option | value | default | member of `settings` | in a cluster file | meaning |
| --- | --- | --- | --- | --- | --- |
)";
  for (const auto& option : troupe::node_options()) text += row(option);
  return text;
}

}  // namespace

// NO-1, NO-2
BOOST_AUTO_TEST_CASE(every_value_that_an_option_takes_is_kept_told_and_passes_the_check) {
  for (const auto& option : troupe::node_options())
    for (const auto& value : right_values(option)) {
      settings given;
      given.insecure = option.setting == "network" || option.setting == "host";
      given.certificates = option.group == "Security" && option.setting != "insecure" ? "a kit" : "";
      option.set(given, value);
      const auto texts = option.texts(given);
      BOOST_TEST_CONTEXT(option.name << " " << value) {
        BOOST_TEST(texts.size() == 1u);
        if (!option.is_flag() && option.name != "--device-map") BOOST_TEST(texts.front() == value);
        settings again;
        for (const auto& text : texts) option.set(again, text);
        BOOST_TEST(option.texts(again) == texts, boost::test_tools::per_element());
        BOOST_CHECK_NO_THROW(troupe::check(given));
      }
    }
}

// NO-1
BOOST_AUTO_TEST_CASE(a_value_out_of_bounds_is_refused_by_name) {
  for (const auto& option : troupe::node_options())
    for (const auto& value : wrong_values(option)) {
      settings given;
      BOOST_CHECK_EXCEPTION(option.set(given, value), troupe::error, [&](const troupe::error& why) {
        BOOST_TEST_CONTEXT(why.what()) {
          BOOST_TEST(troupe::test::contains(why.what(), std::string(option.name) + ": expected "));
          BOOST_TEST(troupe::test::contains(why.what(), "got '" + value + "'"));
        }
        return why.code() == troupe::errc::misuse;
      });
      BOOST_TEST(option.texts(given) == option.texts({}), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(no_two_options_share_a_name_a_setting_or_a_field) {
  std::set<std::string> names, members, fields;
  for (const auto& option : troupe::node_options()) {
    BOOST_TEST(names.insert(std::string(option.name)).second, option.name);
    BOOST_TEST(members.insert(std::string(option.setting)).second, option.name);
    BOOST_TEST(fields.insert(option.field()).second, option.name);
    BOOST_TEST(&troupe::node_option_named(option.name) == &option);
  }
}

// A default that is larger than what an option could say is still checked as a setting of code.
BOOST_AUTO_TEST_CASE(a_limit_of_bytes_may_be_larger_in_code_than_in_an_option) {
  settings unlimited;
  unlimited.send_limit = ~std::uint64_t{0};
  BOOST_CHECK_NO_THROW(troupe::check(unlimited));
}

BOOST_AUTO_TEST_CASE(the_page_of_options_is_the_table) {
  std::ifstream in(TROUPE_SOURCE_DIR "/docs/options.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text == options_page()) return;
  std::ofstream("options.md") << options_page();
  BOOST_ERROR("docs/options.md is not what the table of options says; copy options.md of the test's working folder over it");
}
