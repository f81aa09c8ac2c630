// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "support/program.hpp"

using namespace troupe::apps::test;

BOOST_AUTO_TEST_CASE(every_subcommands_help_shows_an_example) {
  for (std::string name : {"node", "launch", "train", "generate"}) {
    program help({name, "--help"});
    BOOST_TEST(help.how_it_ends() == "exited with 0");
    auto text = help.text();
    BOOST_TEST(text.find("Usage: troupe " + name) != std::string::npos, text);
    auto example = text.find("Example");
    BOOST_TEST((example != std::string::npos && text.find("troupe " + name, example) != std::string::npos), text);
  }
}

BOOST_AUTO_TEST_CASE(the_help_of_the_program_lists_its_subcommands) {
  program help({"--help"});
  BOOST_TEST(help.how_it_ends() == "exited with 0");
  for (std::string name : {"node", "launch", "train", "generate"})
    BOOST_TEST(!help.line_with("  " + name + " ").empty(), help.text());
}

BOOST_AUTO_TEST_CASE(the_version_is_one_line) {
  program version({"--version"});
  BOOST_TEST(version.how_it_ends() == "exited with 0");
  BOOST_TEST(version.lines().size() == 1u);
  BOOST_TEST(version.text().starts_with("troupe 0."), version.text());
}

BOOST_AUTO_TEST_CASE(what_is_not_known_is_one_line_and_status_2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
    {{}, "expected a subcommand: train, generate, node or launch (see 'troupe --help')"},
    {{"trian"}, "unknown subcommand 'trian'; expected train, generate, node or launch; did you mean train? (see 'troupe --help')"},
    {{"node", "--name", "a", "--prot", "1"}, "unknown option '--prot'; did you mean --port? (see 'troupe node --help')"},
    {{"launch"}, "FILE is required (see 'troupe launch --help')"},
    {{"launch", "a.json", "b.json"}, "unexpected argument 'b.json' (see 'troupe launch --help')"},
    {{"train", "--no-such-option"}, "unknown option '--no-such-option' (see 'troupe train --help')"},
    {{"generate", "--no-such-option"}, "unknown option '--no-such-option' (see 'troupe generate --help')"},
  };
  for (auto& [arguments, line] : wrong) {
    program run(arguments);
    BOOST_TEST(run.how_it_ends() == "exited with 2");
    BOOST_TEST(run.text() == "troupe: " + line + "\n");
  }
}
