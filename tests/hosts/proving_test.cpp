// SPDX-License-Identifier: BSD-3-Clause
// Nodes on several hosts that prove who they are, and those that can't.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <troupe/actors/certificates/authority.hpp>
#include <troupe/actors/certificates/kit.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"
#include "hosts/testbed.hpp"
#include "support/contains.hpp"

using namespace troupe::hosts;
namespace certificates = troupe::certificates;
using troupe::test::contains;

namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

/// Three hosts; the authority of the cluster is on h1.
struct cluster {
  testbed all{{"h1", "h2", "h3"}};

  cluster() { certs({"init", "--cluster", "mine"}); }

  std::string certs(words arguments, const std::string& on = "h1") {
    arguments.insert(arguments.begin(), "certs");
    auto run = all[on].troupe(arguments);
    BOOST_TEST(run.how_it_ends() == "exited with 0", run.text());
    return run.text();
  }

  void copy(const std::string& file, const std::string& to) {
    fs::copy_file(all["h1"].folder() / file, all[to].folder() / fs::path(file).filename(),
                  fs::copy_options::overwrite_existing);
  }

  /// Makes a kit for the node on the host.
  void kit(const std::string& name, const std::string& on, const words& more = {}) {
    words arguments{"node", name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    certs(arguments);
    if (on != "h1") copy(name + ".pem", on);
  }

  program node(const std::string& name, const std::string& on, const words& more = {}) {
    words arguments{"node", "--name", name, "--host", "0.0.0.0", "--port", "4001", "--certificates", name + ".pem"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return all[on].troupe(arguments);
  }
};

std::string failure_of(program&& run) {
  BOOST_TEST(run.how_it_ends() == "exited with 1", run.text());
  return run.text();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_FIXTURE_TEST_SUITE(proving, cluster)

BOOST_AUTO_TEST_CASE(nodes_with_certificates_meet_and_others_are_told_why_not) {
  kit("a", "h1");
  kit("b", "h2");
  auto a = node("a", "h1");
  address_of(a);
  auto b = node("b", "h2", {"--join", "h1:4001"});
  address_of(b);
  BOOST_TEST(!a.line_with("peer 'b' is up: 10.77.0.2:4001").empty(), a.text());
  auto asking = all["h2"].troupe({"status", "h1:4001", "--json", "--certificates", "b.pem"});
  BOOST_TEST(asking.how_it_ends() == "exited with 0", asking.text());
  BOOST_TEST(nlohmann::json::parse(asking.text())["peers"][0]["name"] == "b", asking.text());

  // A node without certificates: it waits for the other end to begin, and then is told.
  const auto plain = failure_of(all["h3"].troupe({"status", "h1:4001"}));
  BOOST_TEST(contains(plain, "talks only to nodes with a certificate of its cluster"), plain);
  BOOST_TEST(contains(plain, "--certificates"), plain);
  BOOST_TEST(!a.line_with("refused a connection: the program at 10.77.0.3:").empty(), a.text());
  BOOST_TEST(!a.line_with("it has not begun the handshake of TLS").empty(), a.text());

  // A node that has a certificate, and meets one without.
  auto open = all["h3"].troupe({"node", "--name", "open", "--host", "0.0.0.0", "--port", "4001"});
  address_of(open);
  const auto secured = failure_of(all["h2"].troupe({"status", "h3:4001", "--certificates", "b.pem"}));
  BOOST_TEST(contains(secured, "does not speak TLS 1.3"), secured);
  BOOST_TEST(contains(secured, "10.77.0.3:4001"), secured);
}

BOOST_AUTO_TEST_CASE(a_node_of_another_cluster_is_refused_by_name_at_both_ends) {
  kit("a", "h1");
  auto a = node("a", "h1");
  address_of(a);
  certs({"init", "--cluster", "theirs"}, "h3");
  certs({"node", "x"}, "h3");
  const auto text = failure_of(all["h3"].troupe({"status", "h1:4001", "--certificates", "x.pem"}));
  BOOST_TEST(
    contains(text, "the certificate of node 'a' of cluster 'mine' is of another authority than that of cluster 'theirs' here"),
    text);
  BOOST_TEST(!a.line_with("it says that this node's certificate is of another authority").empty(), a.text());
}

BOOST_AUTO_TEST_CASE(a_revoked_node_loses_its_connections_and_gets_none) {
  kit("a", "h1");
  kit("b", "h2");
  auto a = node("a", "h1", {"--revoked", "troupe-authority/revoked.pem"});
  address_of(a);
  auto b = node("b", "h2", {"--join", "h1:4001"});
  address_of(b);
  BOOST_TEST(!a.line_with("peer 'b' is up").empty(), a.text());
  BOOST_TEST(contains(certs({"revoke", "b"}), "Revoked 1 certificate of node 'b'"));
  BOOST_TEST(
    !a.line_with("read changed certificates again, and ended the connections of nodes that are refused now: 1").empty(),
    a.text());
  BOOST_TEST(!a.line_with("peer 'b' is unreachable").empty(), a.text());
  BOOST_TEST(!a.line_with("the certificate of node 'b' of cluster 'mine' was revoked").empty(), a.text());
  const auto text = failure_of(all["h2"].troupe({"status", "h1:4001", "--certificates", "b.pem"}));
  BOOST_TEST(contains(text, "it says that this node's certificate was revoked"), text);
  kit("c", "h2");
  auto c = all["h2"].troupe({"status", "h1:4001", "--certificates", "c.pem"});
  BOOST_TEST(c.how_it_ends() == "exited with 0", c.text());
}

// The node goes on with its connection, in a new log and with the policy of now.
BOOST_AUTO_TEST_CASE(a_node_that_is_hung_up_on_reads_its_policy_again_and_opens_its_log_again) {  // NC-4
  kit("a", "h1");
  kit("guest", "h2", {"--role", "visitor"});
  const auto write = [&](const std::string& text) { std::ofstream(all["h1"].folder() / "policy.json") << text; };
  write(R"({"roles": {"visitor": {}}})");
  auto a = node("a", "h1", {"--policy", "policy.json", "--log-file", "a.log"});
  address_of(a);
  const auto log = all["h1"].folder() / "a.log";
  const auto ask = [&] { return all["h2"].troupe({"status", "h1:4001", "--certificates", "guest.pem"}); };
  BOOST_TEST(contains(failure_of(ask()), "the policy does not let it"));
  fs::rename(log, all["h1"].folder() / "a.log.1");
  write(R"({"roles": {"visitor": {"status": true}}})");
  a.signal(SIGHUP);
  BOOST_TEST(troupe::test::becomes_true([&] { return contains(troupe::test::read_text(log), "read the policy again"); }),
             troupe::test::read_text(log));
  auto asking = ask();
  BOOST_TEST(asking.how_it_ends() == "exited with 0", asking.text());
  a.signal(SIGTERM);
  BOOST_TEST(a.how_it_ends() == "exited with 0", a.text());
}

BOOST_AUTO_TEST_CASE(a_kit_of_another_time_is_not_used) {
  kit("a", "h1");
  const auto now = std::chrono::system_clock::now();
  const certificates::authority authority(all["h1"].folder() / "troupe-authority");
  const auto text_with = [&](const std::string& name, std::chrono::hours from_now) {
    const auto made = authority.issue(name, "member", {}, now + from_now, certificates::authority::days(1));
    certificates::write_kit(made, all["h2"].folder() / (name + ".pem"));
    return failure_of(all["h2"].troupe({"status", "h1:4001", "--certificates", name + ".pem"}));
  };
  const auto late = text_with("late", std::chrono::hours(-72));
  BOOST_TEST(contains(late, "the certificate of node 'late' of cluster 'mine' expired at"), late);
  const auto early = text_with("early", std::chrono::hours(72));
  BOOST_TEST(contains(early, "the certificate of node 'early' of cluster 'mine' is not valid before"), early);
  for (const auto& text : {late, early}) BOOST_TEST(contains(text, "is this host's clock right?"), text);
}

BOOST_AUTO_TEST_CASE(a_certificate_that_expires_while_its_node_runs_is_named_at_both_ends) {
  kit("a", "h1");
  const certificates::authority authority(all["h1"].folder() / "troupe-authority");
  const certificates::authority::days life(1);
  const auto soon = std::chrono::system_clock::now() - life + std::chrono::seconds(8);  // it expires in 8 s
  certificates::write_kit(authority.issue("b", "member", {}, soon, life), all["h2"].folder() / "b.pem");
  auto b = node("b", "h2");
  address_of(b);
  BOOST_TEST(!b.line_with("this node's certificate expired at").empty(), b.text());
  const auto text = failure_of(all["h1"].troupe({"status", "h2:4001", "--certificates", "a.pem"}));
  BOOST_TEST(contains(text, "the certificate of node 'b' of cluster 'mine' expired at"), text);
  BOOST_TEST(!b.line_with("it says that this node's certificate has expired, or is not valid yet").empty(), b.text());
}

BOOST_AUTO_TEST_CASE(a_kit_that_others_can_read_is_not_used) {
  kit("b", "h2");
  fs::permissions(all["h2"].folder() / "b.pem", fs::perms::group_read, fs::perm_options::add);
  const auto text = failure_of(all["h2"].troupe({"status", "h1:4001", "--certificates", "b.pem"}));
  BOOST_TEST(contains(text, "b.pem"), text);
  BOOST_TEST(contains(text, "chmod 600"), text);
}

BOOST_AUTO_TEST_CASE(a_node_that_others_reach_does_not_start_without_a_proof) {
  auto run = all["h1"].start(troupe::apps::test::program_under_test(), {"node", "--name", "a", "--host", "0.0.0.0"});
  const auto text = failure_of(std::move(run));
  for (const auto* part : {"troupe certs init", "troupe certs node a", "--certificates a.pem", "--insecure"})
    BOOST_TEST(contains(text, part), text);
  kit("b", "h1");
  const auto other = failure_of(all["h1"].troupe({"node", "--name", "a", "--host", "0.0.0.0", "--certificates", "b.pem"}));
  BOOST_TEST(contains(other, "is that of node 'b', and this node is 'a'"), other);
}

BOOST_AUTO_TEST_CASE(a_node_that_froze_comes_back_with_its_proof) {
  kit("a", "h1");
  kit("b", "h2");
  auto a = node("a", "h1");
  address_of(a);
  auto b = node("b", "h2", {"--join", "h1:4001"});
  address_of(b);
  BOOST_TEST(!a.line_with("peer 'b' is up").empty(), a.text());
  b.signal(SIGSTOP);
  BOOST_TEST(!a.line_with("peer 'b' is unreachable").empty(), a.text());
  b.signal(SIGCONT);
  BOOST_TEST(!a.line_with("up again: ").empty(), a.text());
  all.cut("h1", "h2");
  BOOST_TEST(a.has_lines_with("peer 'b' is unreachable", 2), a.text());
  all.mend("h1", "h2");
  BOOST_TEST(a.has_lines_with("up again: ", 2), a.text());
}

BOOST_AUTO_TEST_CASE(a_kit_that_was_renewed_counts_without_a_restart) {
  kit("a", "h1");
  auto a = node("a", "h1");
  address_of(a);
  certs({"renew", "a"});
  BOOST_TEST(!a.line_with("read changed certificates again").empty(), a.text());
  kit("b", "h2");
  auto asking = all["h2"].troupe({"status", "h1:4001", "--certificates", "b.pem"});
  BOOST_TEST(asking.how_it_ends() == "exited with 0", asking.text());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
