// SPDX-License-Identifier: BSD-3-Clause
#include "apps/command_line.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include <c10/util/Exception.h>

#include "support/captured_stderr.hpp"

using namespace troupe::apps;

namespace {

struct outcome {
  int status;
  std::string errors;
};

/// Runs a small program of two subcommands and catches its stderr.
outcome run(
  std::vector<const char*> arguments, std::function<void()> callback = [] {}) {
  CLI::App app{"a test", "troupe"};
  app.require_subcommand(1);
  auto* node = app.add_subcommand("node");
  int port = 0;
  node->add_option("--port", port)->check(between(0, 65535));
  std::string join;
  node->add_option("--join", join)->check(host_and_port());
  std::string name;
  node->add_option("--name", name)->check(node_name());
  node->callback(callback);
  app.add_subcommand("launch");

  arguments.insert(arguments.begin(), "troupe");
  int status = 0;
  auto errors = troupe::test::captured_stderr(
    [&] { status = run_command_line(app, static_cast<int>(arguments.size()), arguments.data()); });
  return {status, errors};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_subcommand_that_returns_is_a_success_without_a_word) {  // CL-1
  auto end = run({"node", "--port", "4001", "--join", "127.0.0.1:4001", "--name", "a"});
  BOOST_TEST(end.status == 0);
  BOOST_TEST(end.errors == "");
}

BOOST_AUTO_TEST_CASE(wrong_arguments_get_one_line_with_a_hint_and_status_2) {  // CL-1, CL-2
  struct wrong {
    std::vector<const char*> arguments;
    std::string line;
  };
  const wrong cases[] = {
    {{}, "expected a subcommand: node or launch (see 'troupe --help')"},
    {{"nod"}, "unknown subcommand 'nod'; expected node or launch; did you mean node? (see 'troupe --help')"},
    {{"luanch"}, "unknown subcommand 'luanch'; expected node or launch; did you mean launch? (see 'troupe --help')"},
    {{"fly"}, "unknown subcommand 'fly'; expected node or launch (see 'troupe --help')"},
    {{"--fly"}, "A subcommand is required (see 'troupe --help')"},
    {{"node", "--prot", "1"}, "unknown option '--prot'; did you mean --port? (see 'troupe node --help')"},
    {{"node", "--zebra"}, "unknown option '--zebra' (see 'troupe node --help')"},
    {{"node", "more"}, "unexpected argument 'more' (see 'troupe node --help')"},
    {{"node", "--port", "70000"}, "--port: expected 0 to 65535, got 70000 (see 'troupe node --help')"},
    {{"node", "--port"}, "--port: expected a value after it (see 'troupe node --help')"},
    {{"node", "--join", "here"},
     "--join: expected an address 'host:port' ('[::1]:4000' for IPv6), got 'here' (see 'troupe node --help')"},
    {{"node", "--name", "a/b"},
     "--name: the name: expected 1 to 64 letters, digits, '-', '_' or '.', the first no '-' or '.', got \"a/b\" (see 'troupe "
     "node --help')"},
  };
  for (auto& c : cases) {
    auto end = run(c.arguments);
    BOOST_TEST(end.status == 2);
    BOOST_TEST(end.errors == "troupe: " + c.line + "\n");
  }
}

BOOST_AUTO_TEST_CASE(a_failure_is_one_line_and_status_1) {  // CL-1, CL-2
  auto end = run({"node"}, [] { throw std::runtime_error("expected this,\n  got that\n"); });
  BOOST_TEST(end.status == 1);
  BOOST_TEST(end.errors == "troupe: expected this,   got that\n");
  end = run({"node"}, [] { throw std::bad_alloc(); });
  BOOST_TEST(end.status == 1);
  BOOST_TEST(end.errors == "troupe: out of memory\n");
  end = run({"node"}, [] { throw 7; });
  BOOST_TEST(end.status == 1);
  BOOST_TEST(end.errors == "troupe: failed by an exception of an unknown type\n");
}

BOOST_AUTO_TEST_CASE(a_failure_of_libtorch_comes_without_its_stack_trace) {
  auto end = run({"node"}, [] { TORCH_CHECK(false, "shapes do not fit"); });
  BOOST_TEST(end.status == 1);
  BOOST_TEST(end.errors == "troupe: shapes do not fit\n");
}

BOOST_AUTO_TEST_CASE(a_subcommand_can_choose_its_status) {
  auto end = run({"node"}, [] { throw CLI::RuntimeError(130); });
  BOOST_TEST(end.status == 130);
  BOOST_TEST(end.errors == "");
}
