// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/rights/policy.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "actors/temporary_folder.hpp"
#include "support/contains.hpp"

using troupe::rights::policy;
using troupe::rights::policy_file;
using troupe::rights::role_rights;
using troupe::test::contains;

namespace {

std::string problem_of(const std::string& text) {
  try {
    policy::parse(text, "policy.json");
  } catch (const std::runtime_error& problem) {
    return problem.what();
  }
  return "none";
}

std::string problem_of_role(const std::string& rights) { return problem_of(R"({"roles": {"guest": )" + rights + "}}"); }

}  // namespace

BOOST_AUTO_TEST_SUITE(policies)

BOOST_AUTO_TEST_CASE(a_role_may_do_what_the_file_says_and_nothing_else) {  // PY-1
  const auto read = policy::parse(R"({"roles": {
    "guest": {"call": ["forward", "hello"], "modules": {"Stage": ["forward"], "Head": []}},
    "admin": {"call": ["*"], "modules": {"*": ["*"]}, "weights": "write", "save": true, "scripts": true, "actors": true,
              "contexts": "all", "trace": true, "status": true, "members": true},
    "reader": {"weights": "read", "contexts": "own", "save": false}
  }})",
                                  "policy.json");
  const auto& guest = read.of("guest");
  BOOST_TEST(guest.call.has("forward"));
  BOOST_TEST(!guest.call.has("weights"));
  BOOST_TEST(guest.may_make("Stage"));
  BOOST_TEST(guest.may_make("Head"));
  BOOST_TEST(!guest.may_make("Other"));
  BOOST_TEST(guest.may_call("Stage", "forward"));
  BOOST_TEST(!guest.may_call("Stage", "other"));
  BOOST_TEST(!guest.may_call("Head", "forward"));
  BOOST_TEST(!guest.may_call("", "forward"));
  const auto nothing = [](const role_rights& of) {
    return of.of_weights == role_rights::weights::none && !of.save && !of.scripts && !of.actors && !of.all_contexts &&
           !of.trace && !of.status && !of.members;
  };
  BOOST_TEST(nothing(guest));
  const auto& admin = read.of("admin");
  BOOST_TEST((admin.of_weights == role_rights::weights::write));
  BOOST_TEST(
    (admin.save && admin.scripts && admin.actors && admin.all_contexts && admin.trace && admin.status && admin.members));
  BOOST_TEST(admin.call.has("anything"));
  BOOST_TEST(admin.may_call("Any", "method"));
  BOOST_TEST((read.of("reader").of_weights == role_rights::weights::read));
  BOOST_TEST(read.roles_that_save() == std::vector<std::string>{"admin"}, boost::test_tools::per_element());
  const auto& unknown = read.of("stranger");
  BOOST_TEST(nothing(unknown));
  BOOST_TEST(!unknown.call.has("forward"));
  BOOST_TEST(!unknown.may_make("Stage"));
}

BOOST_AUTO_TEST_CASE(a_mistake_is_named_with_its_position_and_what_was_expected) {  // PY-2
  const std::pair<std::string, std::string> mistakes[] = {
    {"[]", "policy.json: expected a policy such as"},
    {"{", "policy.json: not valid JSON: parse error at line 1"},
    {"{}", "the field \"roles\" names no role"},
    {R"({"roles": {}})", "the field \"roles\" names no role"},
    {R"({"roles": {"a": {}}, "role": {}})", "policy.json: unknown field \"role\"; expected only roles"},
    {R"({"roles": {"a": {}, "a": {}}})", "the field \"a\" is written twice"},
    {R"({"roles": {"a b": {}}})", "policy.json: roles.a b: expected a role of 1 to 64"},
  };
  for (const auto& [text, expected] : mistakes)
    BOOST_TEST(contains(problem_of(text), expected), text + " gave " + problem_of(text));
  const std::pair<std::string, std::string> of_role[] = {
    {"3", "policy.json: roles.guest: expected an object such as {\"call\": [\"forward\"]}, got 3"},
    {R"({"calls": []})", "roles.guest: unknown field \"calls\"; expected one of call, modules"},
    {R"({"call": "forward"})", "roles.guest.call: expected a list of texts in quotes, got \"forward\""},
    {R"({"call": [""]})", "roles.guest.call: expected names, or \"*\" for all, got an empty text"},
    {R"({"modules": ["Stage"]})", "roles.guest.modules: expected types of modules and their methods"},
    {R"({"modules": {"Stage": "forward"}})", "roles.guest.modules.Stage: expected a list of texts"},
    {R"({"weights": "all"})", R"(roles.guest.weights: expected "none", "read" or "write", got "all")"},
    {R"({"weights": true})", R"(roles.guest.weights: expected "none", "read" or "write", got true)"},
    {R"({"contexts": "mine"})", R"(roles.guest.contexts: expected "own" or "all", got "mine")"},
    {R"({"status": "yes"})", "roles.guest.status: expected true or false, got \"yes\""},
  };
  for (const auto& [rights, expected] : of_role)
    BOOST_TEST(contains(problem_of_role(rights), expected), rights + " gave " + problem_of_role(rights));
  BOOST_TEST(problem_of_role("{}") == "none");
}

BOOST_AUTO_TEST_CASE(a_policy_is_read_from_a_file) {
  const troupe::test::temporary_folder folder;
  const std::string file = folder / "policy.json";
  BOOST_CHECK_EXCEPTION(policy::read(file), std::runtime_error, [&](const auto& problem) {
    return contains(problem.what(), file + ": no such file; expected a policy");
  });
  std::ofstream(file) << R"({"roles": {"guest": {"call": ["forward"]}}})";
  BOOST_TEST(policy::read(file).of("guest").call.has("forward"));
}

BOOST_AUTO_TEST_CASE(a_policy_that_is_read_again_changes_unless_it_has_a_mistake) {  // PB-1, PB-2, PB-3
  const troupe::test::temporary_folder folder;
  const std::string file = folder / "policy.json";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write(R"({"roles": {"guest": {"call": ["forward"]}}})");
  policy_file mine(file);
  const auto& before = mine.now();
  BOOST_TEST(!mine.read_again());
  BOOST_TEST(&mine.now() == &before);
  write(R"({"roles": {"guest": {"status": true}}})");
  BOOST_TEST(mine.read_again());
  BOOST_TEST(before.of("guest").call.has("forward"));
  BOOST_TEST(!mine.now().of("guest").call.has("forward"));
  const auto problem = [&] {
    try {
      mine.read_again();
      return std::string("none");
    } catch (const std::runtime_error& refused) {
      return std::string(refused.what());
    }
  };
  write(R"({"roles": {)");
  BOOST_TEST(contains(problem(), file));
  std::filesystem::remove(file);
  BOOST_TEST(contains(problem(), "no such file"));
  std::filesystem::create_directory(file);
  BOOST_TEST(contains(problem(), "not a file"));
  BOOST_TEST(mine.now().of("guest").status);
}

BOOST_AUTO_TEST_CASE(a_thread_that_looks_while_a_policy_is_read_sees_one_of_the_two) {  // PB-2, PB-3
  const troupe::test::temporary_folder folder;
  const std::string file = folder / "policy.json";
  const auto write = [&](bool may) {
    const std::string flag = may ? "true" : "false";
    std::ofstream(file) << R"({"roles": {"guest": {"status": )" + flag + R"(, "trace": )" + flag + "}}}";
  };
  write(true);
  policy_file mine(file);
  std::atomic<bool> over{false};
  auto looking = std::async(std::launch::async, [&] {
    bool is_whole = true;
    while (!over) {
      const auto& rights = mine.now().of("guest");
      is_whole = is_whole && rights.status == rights.trace;
    }
    return is_whole;
  });
  for (int i = 0; i < 200; ++i) {
    write(i % 2 == 0);
    mine.read_again();
    BOOST_TEST(mine.now().of("guest").status == (i % 2 == 0));
  }
  over = true;
  BOOST_TEST(looking.get());
}

BOOST_AUTO_TEST_SUITE_END()
