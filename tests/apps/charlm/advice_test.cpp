// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/advice.hpp"

#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <cstdlib>

#include "apps/node_starter.hpp"

using namespace troupe::apps::charlm;
using troupe::apps::shell_quoted;

BOOST_AUTO_TEST_SUITE(advice_of_a_run)

BOOST_AUTO_TEST_CASE(a_command_can_be_copied_to_a_shell) {  // AD-1
  BOOST_TEST(shell_quoted("out/charlm") == "out/charlm");
  BOOST_TEST(shell_quoted("my runs/it's") == R"('my runs/it'\''s')");
  BOOST_TEST(shell_quoted("") == "''");
  BOOST_TEST(shell_quoted("a$b") == "'a$b'");
  train_options options;
  options.out = "my runs/1";
  const auto program = shell_quoted(program_invocation_name);
  BOOST_TEST(continue_command(options) == program + " train --resume --out 'my runs/1'");
  options.cluster = "two.json";
  options.verify_steps = 0;
  BOOST_TEST(continue_command(options) == program + " train --resume --out 'my runs/1' --cluster two.json --verify-steps 0");
  options.driver.host = "0.0.0.0";
  options.driver.advertise = "h1";
  options.driver.heartbeat = std::chrono::milliseconds(100);
  options.retry = 3;
  options.node_checkpoints = "/var/my parts";
  BOOST_TEST(continue_command(options) ==
             program +
               " train --resume --out 'my runs/1' --cluster two.json --host 0.0.0.0 --advertise h1 --heartbeat-ms 100"
               " --node-checkpoints '/var/my parts' --retry 3 --verify-steps 0");
  BOOST_TEST(generate_command(options) == program + " generate --out 'my runs/1'");
  setenv("TROUPE_STARTED_AS", "/opt/a bundle/bin/troupe", 1);
  BOOST_TEST(generate_command(options) == "'/opt/a bundle/bin/troupe' generate --out 'my runs/1'");
  unsetenv("TROUPE_STARTED_AS");
}

BOOST_AUTO_TEST_SUITE_END()
