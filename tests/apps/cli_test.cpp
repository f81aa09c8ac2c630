// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "support/program.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::test;

BOOST_AUTO_TEST_CASE(every_subcommands_help_shows_an_example) {
  for (std::string name : {"node", "launch", "train", "generate", "status", "certs", "split-learning", "export", "import"}) {
    program help({name, "--help"});
    BOOST_TEST(help.how_it_ends() == "exited with 0");
    auto text = help.text();
    BOOST_TEST(text.find("Usage: troupe " + name) != std::string::npos, text);
    auto example = text.find("Example");
    BOOST_TEST((example != std::string::npos && text.find("troupe " + name, example) != std::string::npos), text);
    BOOST_TEST(text.find(" in [") == std::string::npos, text);  // "1 to 64", not "INT in [1 - 64]"
  }
}

BOOST_AUTO_TEST_CASE(the_help_of_the_program_lists_its_subcommands) {
  program help({"--help"});
  BOOST_TEST(help.how_it_ends() == "exited with 0");
  for (std::string name : {"node", "launch", "train", "generate", "status", "export", "import"})
    BOOST_TEST(!help.line_with("  " + name + " ").empty(), help.text());
}

BOOST_AUTO_TEST_CASE(a_value_that_is_no_number_or_no_text_is_named_by_its_option) {  // CL-1, TC-1
  for (const char* rate : {"inf", "0", "-1"}) {
    program train({"train", "--learning-rate", rate});
    BOOST_TEST(train.how_it_ends() == "exited with 2", rate);
    BOOST_TEST(train.text().starts_with("troupe: --learning-rate: "), train.text());
  }
  program generate({"generate", "--prompt", "a\xFF"});
  BOOST_TEST(generate.how_it_ends() == "exited with 1");
  BOOST_TEST(generate.text() == "troupe: --prompt is expected to be UTF-8, but its byte 1 (0xFF) is not UTF-8\n");
}

BOOST_AUTO_TEST_CASE(the_version_is_one_line) {
  program version({"--version"});
  BOOST_TEST(version.how_it_ends() == "exited with 0");
  BOOST_TEST(version.lines().size() == 1u);
  BOOST_TEST(version.text().starts_with("troupe 0."), version.text());
}

BOOST_AUTO_TEST_CASE(output_that_can_not_be_written_is_a_failure) {  // CL-3
  for (const std::string arguments : {"--version", "train --help"}) {
    program full({"-c", "exec \"$0\" " + arguments + " > /dev/full", program_under_test()}, "sh");
    BOOST_TEST(full.how_it_ends() == "exited with 1");
    BOOST_TEST(full.text().starts_with("troupe: expected to write to stdout"), full.text());
  }
}

BOOST_AUTO_TEST_CASE(the_help_shows_no_default_that_is_refused) {
  program train({"train", "--help"});
  BOOST_TEST(train.how_it_ends() == "exited with 0");
  BOOST_TEST(train.line_with("--steps").find("=0") == std::string::npos, train.text());
  for (const char* odd : {"3.16224e+07", "9223372036854775807"})
    BOOST_TEST(train.text().find(odd) == std::string::npos, train.text());
  BOOST_TEST(train.line_with("--deadline").find("=60") != std::string::npos, train.text());
  program node({"node", "--help"});
  BOOST_TEST(node.how_it_ends() == "exited with 0");
  BOOST_TEST(node.line_with("--name").find("NAME=node") == std::string::npos, node.text());
}

BOOST_AUTO_TEST_CASE(split_learning_tries_its_folder_before_the_first_step) {
  const temporary_folder folder;
  const auto tables = folder.path().string();
  BOOST_TEST(program({"split-learning", "data", tables}).how_it_ends() == "exited with 0");
  program run({"split-learning", "alone", "--features", tables + "/features.csv", "--labels", tables + "/labels.csv",
               "--epochs", "1", "--out", "/proc/nowhere"});
  BOOST_TEST(run.how_it_ends() == "exited with 1");
  BOOST_TEST(run.text().find("--out: /proc/nowhere can't be written: ") != std::string::npos, run.text());
  BOOST_TEST(run.text().find("epoch") == std::string::npos, run.text());
}

BOOST_AUTO_TEST_CASE(what_is_not_known_is_one_line_and_status_2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
    {{},
     "expected a subcommand: train, generate, node, launch, status, bench, certs, split-learning, export or import (see "
     "'troupe --help')"},
    {{"trian"},
     "unknown subcommand 'trian'; expected train, generate, node, launch, status, bench, certs, split-learning, export or "
     "import; "
     "did you mean train? (see 'troupe --help')"},
    {{"node", "--name", "a", "--prot", "1"}, "unknown option '--prot'; did you mean --port? (see 'troupe node --help')"},
    {{"launch"}, "FILE is required (see 'troupe launch --help')"},
    {{"launch", "a.json", "b.json"}, "unexpected argument 'b.json' (see 'troupe launch --help')"},
    {{"train", "--no-such-option"}, "unknown option '--no-such-option' (see 'troupe train --help')"},
    {{"train", "--seed", "1", "--seed", "2"}, "--seed is given 2 times, expected once (see 'troupe train --help')"},
    {{"train", "--seed", "-1"}, "--seed: expected 0 or more, got -1 (see 'troupe train --help')"},
    {{"train", "--micro-batches", "1.5"},
     "--micro-batches: expected a whole number, 1 to 1000000, got 1.5 (see 'troupe train --help')"},
    {{"train", "--schedule", "1F1B"},
     "--schedule: expected dataflow, gpipe, 1f1b or zero-bubble, got 1F1B (see 'troupe train --help')"},
    {{"train", "--seconds", "0"}, "--seconds: expected 1 to 31622400, got 0 (see 'troupe train --help')"},
    {{"train", "--seconds", "nan"}, "--seconds: expected 1 to 31622400, got nan (see 'troupe train --help')"},
    {{"train", "--heartbeat-ms", "0"},
     "--heartbeat-ms: expected a whole number from 1 to 604800000, got '0' (see 'troupe train --help')"},
    {{"train", "--host", "h1"}, "--host requires --cluster or --join (see 'troupe train --help')"},
    {{"train", "--nodes", "a,b"}, "--nodes requires --join (see 'troupe train --help')"},
    {{"train", "--join", "h1"},
     "--join: expected an address 'host:port' ('[::1]:4000' for IPv6), got 'h1' (see 'troupe train --help')"},
    {{"train", "--join", "h1:4001", "--cluster", "c.json"}, "--cluster excludes --join (see 'troupe train --help')"},
    {{"train", "--steps", "0"}, "--steps: expected at least 1, got 0 (see 'troupe train --help')"},
    {{"train", "--steps", "9223372036854775808"},
     "--steps: expected at least 1, got 9223372036854775808 (see 'troupe train --help')"},
    {{"train", "--learning-rate", "0"}, "--learning-rate: expected above 0, got 0 (see 'troupe train --help')"},
    {{"train", "--deadline", "1e9"}, "--deadline: expected 1 to 86400, got 1e9 (see 'troupe train --help')"},
    {{"generate", "--seed", "-1"}, "--seed: expected 0 or more, got -1 (see 'troupe generate --help')"},
    {{"generate", "--temperature", "1e9"}, "--temperature: expected 0 to 100, got 1e9 (see 'troupe generate --help')"},
    {{"status", "127.0.0.1:1", "--watch", "-1"}, "--watch: expected 0 to 86400, got -1 (see 'troupe status --help')"},
    {{"bench", "--savina"},
     "expected --cluster FILE or --join HOST:PORT, which name the nodes to measure (see 'troupe bench --help')"},
    {{"bench", "--seconds", "0"}, "--seconds: expected 0.01 to 600, got 0 (see 'troupe bench --help')"},
    {{"node", "--name", "a", "--trace=x"}, "--trace: expected no value, got 'x' (see 'troupe node --help')"},
    {{"node", "--port", "abc"}, "--port: expected a whole number from 0 to 65535, got 'abc' (see 'troupe node --help')"},
    {{"export", "run"}, "--to is required (see 'troupe export --help')"},
    {{"generate", "--no-such-option"}, "unknown option '--no-such-option' (see 'troupe generate --help')"},
  };
  for (auto& [arguments, line] : wrong) {
    program run(arguments);
    BOOST_TEST(run.how_it_ends() == "exited with 2");
    BOOST_TEST(run.text() == "troupe: " + line + "\n");
  }
}
