// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/contains.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::test;
using troupe::test::contains;

namespace {

using words = std::vector<std::string>;

struct own_folder {
  temporary_folder folder;

  std::string file(const std::string& name) const { return (folder.path() / name).string(); }

  /// Runs `troupe certs` in the folder. Returns what it prints.
  std::string certs(const words& arguments, const std::string& how_it_ends = "exited with 0") const {
    words all{"-C", folder.path().string(), program_under_test(), "certs"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    program run(all, "env");
    BOOST_TEST(run.how_it_ends() == how_it_ends, run.text());
    return run.text();
  }
  std::string fails(const words& arguments) const { return certs(arguments, "exited with 1"); }
};

unsigned mode_of(const std::string& file) {
  struct stat facts {};
  BOOST_TEST_REQUIRE(::stat(file.c_str(), &facts) == 0);
  return facts.st_mode & 07777U;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(certs_command, own_folder)

BOOST_AUTO_TEST_CASE(kits_are_made_shown_renewed_and_revoked) {
  BOOST_TEST(contains(certs({"init", "--cluster", "mine"}), "The authority of cluster 'mine' is in troupe-authority/"));
  const auto made = certs({"node", "a", "--role", "reader", "--host", "h1", "--host", "10.0.0.7"});
  BOOST_TEST(contains(made, "a.pem: node 'a' of cluster 'mine', role reader, valid until "), made);
  BOOST_TEST(contains(made, "troupe node --name a --host 0.0.0.0 --port 4001 --certificates a.pem"), made);
  BOOST_TEST(mode_of(file("a.pem")) == 0600U);
  certs({"node", "b", "--out", file("other.pem"), "--days", "2"});
  BOOST_TEST(std::filesystem::exists(file("other.pem")));

  const auto first = content_of(file("a.pem"));
  BOOST_TEST(contains(certs({"renew", "a"}), "role reader"));
  BOOST_TEST(content_of(file("a.pem")) != first);

  BOOST_TEST(contains(certs({"revoke", "a"}), "Revoked 2 certificates of node 'a'. Copy troupe-authority/revoked.pem"));
  const auto all = certs({"show"});
  BOOST_TEST(contains(all, "cluster 'mine', authority valid until "), all);
  BOOST_TEST(contains(all, "h1, 10.0.0.7"), all);
  BOOST_TEST(contains(all, "revoked"), all);
  BOOST_TEST(contains(all, "valid "), all);
  const auto one = certs({"show", "other.pem"});
  BOOST_TEST(contains(one, "b     mine     member  valid"), one);
  BOOST_TEST(!contains(one, "PRIVATE"), one);
}

BOOST_AUTO_TEST_CASE(a_kit_is_shown_with_its_state) {
  certs({"init", "--cluster", "mine"});
  certs({"node", "a", "--days", "3"});
  const auto shown = certs({"show", "a.pem"});
  BOOST_TEST((contains(shown, "valid, 3 days left") || contains(shown, "valid, 2 days left")),
             shown);  // a second may have passed
  certs({"revoke", "a"});
  BOOST_TEST(contains(certs({"show", "a.pem"}), "revoked"));
  BOOST_TEST(!contains(certs({"show", "a.pem"}), "left"));
  certs({"init", "--cluster", "mine", "--authority", "another"});
  BOOST_TEST(!contains(certs({"show", "a.pem", "--authority", "another"}), "revoked"));
}

BOOST_AUTO_TEST_CASE(renewing_says_what_becomes_of_the_earlier_certificates) {
  certs({"init"});
  certs({"node", "a", "--days", "9"});
  const auto again = certs({"renew", "a"});
  BOOST_TEST(contains(again, "The certificate before this one stays valid until "), again);
  BOOST_TEST(contains(again, "If its key was stolen: troupe certs revoke a, and renew again."), again);
  certs({"revoke", "a"});
  const auto back = certs({"renew", "a"});
  BOOST_TEST(contains(back, "Node 'a' was revoked. With this kit the node is let in again."), back);
  BOOST_TEST(!contains(back, "stays valid"), back);
}

BOOST_AUTO_TEST_CASE(what_helps_names_the_folder_of_the_authority) {
  BOOST_TEST(contains(certs({"init", "--authority", "mine"}), "Next: troupe certs node NAME --authority mine\n"));
  BOOST_TEST(
    contains(fails({"renew", "a", "--authority", "mine"}), "make the first one with `troupe certs node a --authority mine`"));
  certs({"node", "a", "--authority", "mine"});
  BOOST_TEST(contains(fails({"node", "a", "--authority", "mine"}), "replace it with `troupe certs renew a --authority mine`"));
}

BOOST_AUTO_TEST_CASE(renewing_replaces_nothing_but_a_kit_of_the_node) {
  certs({"init", "--cluster", "mine"});
  certs({"node", "a"});
  certs({"node", "b"});
  certs({"init", "--cluster", "other", "--authority", "another"});
  certs({"node", "a", "--authority", "another", "--out", "others.pem"});
  for (const auto* kept : {"b.pem", "others.pem", "troupe-authority/authority.pem", "troupe-authority/authority.key"}) {
    const auto before = content_of(file(kept));
    const auto text = fails({"renew", "a", "--out", kept});
    BOOST_TEST(contains(text, std::string(kept) + " is not a kit of node 'a' of cluster 'mine'; move it away"), text);
    BOOST_TEST(content_of(file(kept)) == before, kept);
  }
  BOOST_TEST(contains(certs({"renew", "a"}), "a.pem: node 'a'"));
}

BOOST_AUTO_TEST_CASE(a_kit_that_cannot_be_written_leaves_no_certificate) {
  certs({"init"});
  const auto text = fails({"node", "a", "--out", "nowhere/a.pem"});
  BOOST_TEST(contains(text, "can't make nowhere/a.pem: No such file or directory; no certificate was made"), text);
  BOOST_TEST(!contains(certs({"show"}), "member"));
}

BOOST_AUTO_TEST_CASE(a_second_kit_of_a_node_is_told) {
  certs({"init"});
  certs({"node", "a", "--role", "reader"});
  const auto text = certs({"node", "a", "--role", "trainer", "--out", "second.pem"});
  BOOST_TEST(contains(text, "Node 'a' has another certificate, of the role reader, which is valid until "), text);
}

BOOST_AUTO_TEST_CASE(mistakes_say_what_helps) {
  BOOST_TEST(contains(fails({"node", "a"}), "troupe-authority holds no authority; make one with `troupe certs init`"));
  BOOST_TEST(contains(fails({"show"}), "troupe-authority is not there"));
  certs({"init"});
  BOOST_TEST(contains(fails({"init"}), "holds an authority already"));
  certs({"node", "a"});
  BOOST_TEST(contains(fails({"node", "a"}), "a.pem is there already; replace it with `troupe certs renew a`"));
  BOOST_TEST(contains(fails({"renew", "b"}), "node 'b' has no certificate of troupe-authority"));
  BOOST_TEST(contains(fails({"revoke", "b"}), "node 'b' has no valid certificate"));
  BOOST_TEST(contains(fails({"node", "a/b"}), "expected 1 to 64 letters"));
  BOOST_TEST(contains(fails({"node", "c", "--role", "a b"}), "--role: expected"));
  BOOST_TEST(contains(fails({"node", "c", "--host", "a,b"}), "--host: expected an address or a host name, got 'a,b'"));
  BOOST_TEST(contains(fails({"show", "none.pem"}), "none.pem is not there: expected a kit, or the folder"));
  BOOST_TEST(contains(fails({"show", "a"}), "a is not there: expected a kit, as a.pem, or the folder"));
  BOOST_TEST(!std::filesystem::exists(file("c.pem")));
  BOOST_TEST(contains(certs({}, "exited with 2"), "init, node, renew, revoke or show"));
  BOOST_TEST(contains(
    certs({"nod"}, "exited with 2"),
    "unknown subcommand 'nod'; expected init, node, renew, revoke or show; did you mean node? (see 'troupe certs --help')"));
  BOOST_TEST(contains(certs({"node"}, "exited with 2"), "NAME is required (see 'troupe certs node --help')"));
  BOOST_TEST(contains(certs({"node", "c", "--days", "0"}, "exited with 2"), "expected 1 to 36500"));
}

BOOST_AUTO_TEST_CASE(a_node_says_which_file_it_misses) {
  certs({"init"});
  certs({"node", "a"});
  const auto problem = [&](words arguments) {
    arguments.insert(arguments.begin(), {"-C", folder.path().string(), program_under_test(), "node", "--name", "a"});
    program node(arguments, "env");
    BOOST_TEST(node.how_it_ends() == "exited with 1");
    return node.text();
  };
  const auto kit = problem({"--certificates", "b.pem"});
  BOOST_TEST(contains(kit, "--certificates b.pem: there is no such file; `troupe certs node NAME` makes a kit"), kit);
  const auto list = problem({"--certificates", "a.pem", "--revoked", "r.pem"});
  BOOST_TEST(contains(list, "--revoked r.pem: there is no such file; the list is revoked.pem"), list);
  const auto keyless = problem({"--certificates", "troupe-authority/authority.pem"});
  BOOST_TEST(contains(keyless, "authority.pem: no private key is in it"), keyless);
  const auto naked = problem({"--host", "0.0.0.0"});
  BOOST_TEST(contains(naked, "run `troupe certs node a`; copy a.pem to this host, and add --certificates a.pem."), naked);
}

BOOST_AUTO_TEST_CASE(a_node_warns_of_a_policy_that_lets_others_save_where_there_is_no_folder) {
  certs({"init"});
  certs({"node", "a"});
  std::ofstream(file("policy.json")) << R"({"roles": {"trainer": {"save": true}, "guest": {}}})";
  const auto warns = [&](const words& more) {
    words arguments{"node", "--name", "a", "--certificates", file("a.pem"), "--policy", file("policy.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    program node(arguments);
    BOOST_TEST(!node.line_with("a listens on 127.0.0.1:").empty(), node.text());
    node.signal(SIGTERM);
    BOOST_TEST(node.how_it_ends() == "exited with 0", node.text());
    BOOST_TEST(!contains(node.text(), "'guest'"), node.text());
    return contains(node.text(), "the policy lets role 'trainer' save checkpoints, and this node has no folder for them");
  };
  BOOST_TEST(warns({}));
  BOOST_TEST(!warns({"--data-dir", folder.path().string()}));
}

BOOST_AUTO_TEST_CASE(a_node_that_is_hung_up_on_reads_its_policy_again) {  // NC-4
  certs({"init"});
  certs({"node", "a"});
  certs({"node", "guest", "--role", "visitor"});
  const auto write = [&](const std::string& text) { std::ofstream(file("policy.json")) << text; };
  write(R"({"roles": {"visitor": {}}})");
  program node({"node", "--name", "a", "--certificates", file("a.pem"), "--policy", file("policy.json")});
  const auto line = node.line_with("a listens on 127.0.0.1:");
  BOOST_TEST_REQUIRE(!line.empty(), node.text());
  const auto asks = [&] {
    program asking({"status", line.substr(line.find("127.0.0.1:")), "--certificates", file("guest.pem")});
    const auto end = asking.how_it_ends();
    return end == "exited with 0"                                  ? "answered"
           : contains(asking.text(), "the policy does not let it") ? "refused"
                                                                   : asking.text();
  };
  BOOST_TEST(asks() == "refused");
  write(R"({"roles": {"visitor": {"status": true}}})");
  node.signal(SIGHUP);
  BOOST_TEST(node.has_lines_with("read the policy again", 1), node.text());
  BOOST_TEST(asks() == "answered");
  write(R"({"roles": {"visitor": {"status": tru)");
  node.signal(SIGHUP);
  BOOST_TEST(node.has_lines_with("; what was read before stays in force", 1), node.text());
  BOOST_TEST(asks() == "answered");
  write(R"({"roles": {"visitor": {"call": ["*"]}}})");
  node.signal(SIGHUP);
  BOOST_TEST(node.has_lines_with("read the policy again", 2), node.text());
  BOOST_TEST(asks() == "refused");
  node.signal(SIGTERM);
  BOOST_TEST(node.how_it_ends() == "exited with 0", node.text());
  const auto lines = node.lines();
  BOOST_TEST(std::count_if(lines.begin(), lines.end(), [](const auto& each) { return contains(each, "policy.json"); }) == 1,
             node.text());
}

BOOST_AUTO_TEST_CASE(a_node_that_waits_for_a_seed_reads_its_policy_again) {  // NC-4
  certs({"init"});
  certs({"node", "a"});
  std::ofstream(file("policy.json")) << R"({"roles": {"visitor": {}}})";
  program node({"node", "--name", "a", "--certificates", file("a.pem"), "--policy", file("policy.json"), "--join",
                "127.0.0.1:1", "--join-wait", "0"});
  BOOST_TEST_REQUIRE(!node.line_with("waits for a node to join").empty(), node.text());
  std::ofstream(file("policy.json")) << "{";
  node.signal(SIGHUP);
  BOOST_TEST(node.has_lines_with("; what was read before stays in force", 1), node.text());
  node.signal(SIGTERM);
  BOOST_TEST(node.how_it_ends() == "exited with 0", node.text());
}

BOOST_AUTO_TEST_CASE(a_node_uses_a_kit_from_its_stdin_and_says_what_is_wrong_with_one) {
  certs({"init"});
  certs({"node", "a"});
  program node({"-c", "\"$0\" node --name a --certificates - < " + file("a.pem"), program_under_test()}, "sh");
  BOOST_TEST(!node.line_with("a listens on 127.0.0.1:").empty(), node.text());
  const auto says = [&](const std::string& input, const std::string& what) {
    program wrong({"-c", input + " | \"$0\" node --name a --certificates -", program_under_test()}, "sh");
    BOOST_TEST(wrong.how_it_ends() == "exited with 1");
    BOOST_TEST(contains(wrong.text(), what), wrong.text());
  };
  says("head -c 1000 " + file("a.pem"), "expected a kit on stdin, but it ended after 1000 bytes");
  says("yes", "longer than a kit");
  says("tac " + file("a.pem"), "no private key");
}

BOOST_AUTO_TEST_SUITE_END()
