// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/authority.hpp>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/certificates/refusal_reason.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/errors.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "support/contains.hpp"

namespace {

using namespace troupe::certificates;
using troupe::test::contains;
using troupe::test::own_cluster;
using clock = std::chrono::system_clock;
using std::chrono::hours;

std::string problem_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const troupe::error& refused) {
    BOOST_TEST((refused.code() == troupe::errc::misuse));
    return refused.what();
  }
  return "nothing was refused";
}

std::string text_in(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  ::chmod(file.c_str(), 0600);
}

mode_t mode_of(const std::string& file) {
  struct stat facts {};
  BOOST_TEST_REQUIRE(::stat(file.c_str(), &facts) == 0);
  return facts.st_mode & 07777;
}

/// Why the certificate in the kit's file is refused by the other kit.
std::string why(const std::string& theirs, const std::string& own, const std::string& revoked = {},
                clock::time_point now = clock::now()) {
  const auto kit = read_kit(own);
  const auto certificate = read_issued(theirs, now);
  if (revoked.empty()) return why_refused(certificate.certificate.get(), {kit.identity.cluster, kit.authority.get()}, now).text;
  const revocations list(revoked, kit.authority.get());
  return why_refused(certificate.certificate.get(), {kit.identity.cluster, kit.authority.get(), &list}, now).text;
}

bool runs(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

}  // namespace

BOOST_AUTO_TEST_SUITE(certificates_of_a_cluster)

BOOST_AUTO_TEST_CASE(an_authority_in_memory_issues_kits_and_writes_no_file) {  // CY-6
  const own_cluster folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directory(folder.file("empty"));
  std::filesystem::current_path(folder.file("empty"));
  const auto made = authority::in_memory("mine", clock::now());
  const auto a = made.issue("a", "member", {}, clock::now());
  const auto b = made.issue("b", "member", {}, clock::now());
  BOOST_TEST(contains(problem_of([&] { made.revoke("a", clock::now()); }), "an authority in memory"));
  BOOST_TEST(contains(problem_of([&] { made.all(clock::now()); }), "an authority in memory"));
  BOOST_TEST(std::filesystem::is_empty(folder.file("empty")));
  std::filesystem::current_path(before);
  write_kit(a, folder.file("a.pem"));
  write_kit(b, folder.file("b.pem"));
  BOOST_TEST(why(folder.file("a.pem"), folder.file("b.pem")) == "");
}

BOOST_AUTO_TEST_CASE(a_kit_is_accepted_by_nodes_of_its_cluster) {
  const own_cluster mine;
  const auto a = mine.kit("a");
  const auto b = mine.kit("b", clock::now(), own_cluster::days(1), "reader");
  BOOST_TEST(why(b, a) == "");
  BOOST_TEST(why(a, b) == "");
  const auto kit = read_kit(b);
  BOOST_TEST(kit.identity.cluster == "mine");
  BOOST_TEST(kit.identity.node == "b");
  BOOST_TEST(kit.identity.role == "reader");
}

BOOST_AUTO_TEST_CASE(openssl_itself_verifies_what_was_made) {
  const own_cluster mine;
  const auto kit = mine.kit("a");
  const auto folder = mine.authority().revoked_file().parent_path().string();
  BOOST_TEST(runs("openssl verify -x509_strict -purpose sslserver -CAfile " + folder + "/authority.pem " + kit));
  BOOST_TEST(runs("openssl verify -x509_strict -purpose sslclient -CAfile " + folder + "/authority.pem " + kit));
  BOOST_TEST(runs("openssl crl -CAfile " + folder + "/authority.pem -noout -in " + mine.revoked()));
  mine.authority().revoke("a", clock::now());
  BOOST_TEST(!runs("openssl verify -crl_check -CAfile " + folder + "/authority.pem -CRLfile " + mine.revoked() + " " + kit));
}

BOOST_AUTO_TEST_CASE(a_certificate_says_why_it_is_refused) {
  const own_cluster mine("mine", clock::now() - hours(24 * 30));
  const own_cluster other("other");
  const own_cluster namesake("mine");
  const auto a = mine.kit("a");
  BOOST_TEST(
    contains(why(other.kit("x"), a), "node 'x' of cluster 'other' is of another authority than that of cluster 'mine'"));
  BOOST_TEST(contains(why(namesake.kit("x"), a), "node 'x' of cluster 'mine' is of another authority"));
  const auto late = why(mine.kit("x", clock::now() - hours(24 * 20), own_cluster::days(2)), a);
  BOOST_TEST(contains(late, "node 'x' of cluster 'mine' expired at "), late);
  BOOST_TEST(contains(late, "clock"), late);
  const auto early = why(mine.kit("x", clock::now() + hours(48)), a);
  BOOST_TEST(contains(early, "node 'x' of cluster 'mine' is not valid before "), early);
  BOOST_TEST(contains(early, "clock"), early);
  const auto b = mine.kit("b");
  BOOST_TEST(why(b, a, mine.revoked()) == "");
  BOOST_TEST(mine.authority().revoke("b", clock::now()) == 1U);
  BOOST_TEST(why(b, a, mine.revoked()) == "the certificate of node 'b' of cluster 'mine' was revoked");
  BOOST_TEST(why(a, b, mine.revoked()) == "");
}

BOOST_AUTO_TEST_CASE(a_node_is_warned_of_its_own_certificate) {
  const auto made_at = clock::now() - std::chrono::days(1);
  const own_cluster mine("mine", made_at);
  const auto warning = [&](const std::string& kit, clock::duration age, const revocations* list = nullptr) {
    return warning_about(read_issued(kit, clock::now()).certificate.get(), list, made_at + age);
  };
  const auto year = mine.kit("a", made_at, own_cluster::days(365));
  BOOST_TEST(warning(year, hours(0)) == "");
  BOOST_TEST(warning(year, hours(24 * 334)) == "");
  const auto month = warning(year, hours(24 * 336));
  BOOST_TEST(contains(month, "this node's certificate expires in 29 days, at "), month);
  BOOST_TEST(contains(month, "; ask whoever has the cluster's authority for a new kit: troupe certs renew a"), month);
  BOOST_TEST(contains(warning(year, hours(24 * 364 + 4)), "expires in 20 hours, at"));
  BOOST_TEST(contains(warning(year, hours(24 * 365) - std::chrono::minutes(5)), "expires in less than two hours, at"));
  BOOST_TEST(contains(warning(year, hours(24 * 365 + 1)), "this node's certificate expired at "));
  const auto day = mine.kit("a", made_at, own_cluster::days(1));
  BOOST_TEST(warning(day, hours(20)) == "");
  BOOST_TEST(contains(warning(day, hours(22)), "expires in 2 hours, at"));
  mine.authority().revoke("a", made_at);
  const revocations list(mine.revoked(), mine.authority().certificate());
  BOOST_TEST(
    contains(warning(year, hours(0), &list), "this node's certificate was revoked, and other nodes refuse it; ask whoever"));
}

BOOST_AUTO_TEST_CASE(an_authority_is_not_a_node_and_a_node_is_not_an_authority) {
  const own_cluster mine;
  const auto kit = read_kit(mine.kit("a"));
  BOOST_TEST(contains(why_refused(kit.authority.get(), {kit.identity.cluster, kit.authority.get()}, clock::now()).text,
                      "not that of a node"));
  BOOST_TEST(why_refused(nullptr, {kit.identity.cluster, kit.authority.get()}, clock::now()).text == "no certificate came");
}

BOOST_AUTO_TEST_CASE(an_authority_that_has_expired_is_named) {
  const own_cluster old("mine", clock::now() - hours(24 * 3651));
  const auto kit = old.kit("a", clock::now() - hours(24 * 2));
  const auto text = problem_of([&] { read_kit(kit); });
  BOOST_TEST(contains(text, "the authority of cluster 'mine' expired at "), text);
  BOOST_TEST(contains(text, "certs init"), text);
}

BOOST_AUTO_TEST_CASE(keys_are_for_their_owner_alone) {
  const own_cluster mine;
  const auto kit = mine.kit("a");
  BOOST_TEST(mode_of(kit) == 0600U);
  BOOST_TEST(mode_of(mine.file("authority/authority.key")) == 0600U);
  BOOST_TEST(mode_of(mine.file("authority")) == 0700U);
  const auto own_key = mine.file("authority/authority.key");
  for (const mode_t mode : {0640U, 0604U, 0660U, 0644U}) {
    ::chmod(kit.c_str(), mode);
    const auto text = problem_of([&] { read_kit(kit); });
    BOOST_TEST(contains(text, "others can read the private key"), text);
    BOOST_TEST(contains(text, "chmod 600 " + kit), text);
    ::chmod(own_key.c_str(), mode);
    const auto of_authority = problem_of([&] { authority again(mine.file("authority")); });
    BOOST_TEST(contains(of_authority, "chmod 600 " + own_key), of_authority);
  }
}

BOOST_AUTO_TEST_CASE(a_key_is_written_into_a_new_file) {
  const own_cluster mine;
  const auto kit = mine.file("a.pem");
  const auto victim = mine.file("victim");
  put(victim, "what the user needs");
  const auto made = mine.authority().issue("a", "member", {}, clock::now());
  // Another program holds a file open where the kit is about to be written. The program would read the key.
  put(kit + ".part", "");
  const troupe::support::owned_descriptor held(::open((kit + ".part").c_str(), O_RDONLY | O_CLOEXEC));
  BOOST_TEST_REQUIRE(held.get() >= 0);
  write_kit(made, kit);
  struct stat facts {};
  BOOST_TEST_REQUIRE(::fstat(held.get(), &facts) == 0);
  BOOST_TEST(facts.st_size == 0);
  // A link there does not lead the key, or the new mode, to another file.
  std::filesystem::create_symlink(victim, kit + ".part");
  ::chmod(victim.c_str(), 0644);
  write_kit(made, kit, true);
  BOOST_TEST(text_in(victim) == "what the user needs");
  BOOST_TEST(mode_of(victim) == 0644U);
  BOOST_TEST(read_kit(kit).identity.node == "a");
  BOOST_TEST(mode_of(kit) == 0600U);
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_there_already_is_not_changed) {  // CY-5
  const own_cluster mine;
  const auto folder = mine.file("shared");
  std::filesystem::create_directory(folder);
  for (const mode_t mode : {0755U, 0770U, 0701U}) {
    ::chmod(folder.c_str(), mode);
    const auto text = problem_of([&] { authority::create(folder, "mine", clock::now()); });
    BOOST_TEST(contains(text, folder + " is there already, and others may use it"), text);
    BOOST_TEST(mode_of(folder) == mode);
    BOOST_TEST(std::filesystem::is_empty(folder));
  }
  put(mine.file("file"), "");
  BOOST_TEST(contains(problem_of([&] { authority::create(mine.file("file"), "mine", clock::now()); }), "can't be made: "));
  ::chmod(folder.c_str(), 0700);
  BOOST_TEST(authority::create(folder, "mine", clock::now()).cluster() == "mine");
  BOOST_TEST(authority::create(mine.file("new/folder/"), "mine", clock::now()).cluster() == "mine");
  BOOST_TEST(mode_of(mine.file("new/folder")) == 0700U);
  BOOST_TEST(mode_of(mine.file("new/folder/issued")) == 0700U);
}

BOOST_AUTO_TEST_CASE(no_password_is_asked_for) {
  const own_cluster mine;
  // An encrypted file: OpenSSL reads the password from the terminal, and from stdin if there is none.
  const auto encrypted = [&](std::string text) {
    const auto end_of_line = text.find('\n') + 1;
    text.insert(end_of_line, "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF\n\n");
    put(mine.file("encrypted.pem"), text);
    return mine.file("encrypted.pem");
  };
  auto answers = troupe::support::make_pipe();
  const std::string answer = "guess\n";
  BOOST_TEST_REQUIRE(::write(answers.write.get(), answer.data(), answer.size()) == static_cast<ssize_t>(answer.size()));
  answers.write = {};
  const troupe::support::owned_descriptor own_stdin(::fcntl(0, F_DUPFD_CLOEXEC, 3));
  ::dup2(answers.read.get(), 0);
  const auto kit = text_in(mine.kit("a"));
  const auto certificate = kit.find("-----BEGIN CERTIFICATE");
  const std::vector<std::string> refused{
    problem_of([&] { revocations(encrypted(text_in(mine.revoked())), mine.authority().certificate()); }),
    problem_of([&] { read_issued(encrypted(kit.substr(certificate)), clock::now()); }),
    problem_of([&] { read_kit(encrypted(kit)); }),
  };
  int left = 0;
  ::ioctl(0, FIONREAD, &left);
  own_stdin ? ::dup2(own_stdin.get(), 0) : ::close(0);
  BOOST_TEST(left == static_cast<int>(answer.size()));
  for (const auto& each : refused) BOOST_TEST(contains(each, "encrypted.pem"), each);
}

BOOST_AUTO_TEST_CASE(a_kit_that_can_not_be_used_says_why) {
  const own_cluster mine;
  const auto kit = mine.kit("a");
  const auto whole = text_in(kit);
  BOOST_TEST(contains(problem_of([&] { read_kit(mine.file("no.pem")); }), "No such file"));
  BOOST_TEST(contains(problem_of([&] { read_kit(mine.file("authority")); }), "expected a regular file"));
  const auto broken = mine.file("broken.pem");
  put(broken, "");
  BOOST_TEST(contains(problem_of([&] { read_kit(broken); }), "no private key is in it"));
  const auto certificates = whole.find("-----BEGIN CERTIFICATE");
  put(broken, whole.substr(certificates));
  BOOST_TEST(contains(problem_of([&] { read_kit(broken); }), "no private key is in it"));
  put(broken, whole.substr(0, certificates));
  BOOST_TEST(contains(problem_of([&] { read_kit(broken); }), "a certificate is missing"));
  put(broken, whole.substr(0, whole.rfind("-----BEGIN")));
  BOOST_TEST(contains(problem_of([&] { read_kit(broken); }), "a certificate is missing"));
  const auto other = text_in(mine.kit("b"));
  put(broken, other.substr(0, other.find("-----BEGIN CERTIFICATE")) + whole.substr(certificates));
  BOOST_TEST(contains(problem_of([&] { read_kit(broken); }), "not that of the certificate"));
  put(broken, std::string(300'000, 'x'));
  BOOST_TEST(contains(problem_of([&] { read_kit(broken); }), "expected at most"));
}

BOOST_AUTO_TEST_CASE(a_damaged_kit_is_refused_or_says_the_same) {
  const own_cluster mine;
  const auto kit = mine.kit("a");
  const auto whole = text_in(kit);
  const auto broken = mine.file("broken.pem");
  const auto check = [&](const std::string& text) {
    put(broken, text);
    try {
      BOOST_TEST((read_kit(broken).identity == identity{"mine", "a", "member"}));
    } catch (const troupe::error& refused) {
      BOOST_TEST(contains(refused.what(), broken), refused.what());
    }
  };
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) check(whole.substr(0, bytes));
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 7));
    check(changed);
  }
}

BOOST_AUTO_TEST_CASE(a_list_that_is_damaged_or_of_others_is_refused) {
  const own_cluster mine;
  const own_cluster other("mine");
  mine.authority().issue("b", "member", {}, clock::now());
  mine.authority().revoke("b", clock::now());
  BOOST_TEST(
    contains(problem_of([&] { revocations(other.revoked(), mine.authority().certificate()); }), "of another authority"));
  BOOST_TEST(contains(problem_of([&] { revocations(mine.file("no.pem"), mine.authority().certificate()); }), "No such file"));
  const auto whole = text_in(mine.revoked());
  const auto broken = mine.file("broken.pem");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(broken, changed);
    try {
      const revocations list(broken, mine.authority().certificate());
      for (const auto& each : mine.authority().all(clock::now())) BOOST_TEST(list.contains(each.certificate.get()));
    } catch (const troupe::error& refused) {
      BOOST_TEST(contains(refused.what(), broken), refused.what());
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_overwritten_unasked) {  // CY-1
  const own_cluster mine;
  const auto text = problem_of([&] { authority::create(mine.file("authority"), "mine", clock::now()); });
  BOOST_TEST(contains(text, "holds an authority already"), text);
  const auto kit = mine.kit("a");
  BOOST_TEST(contains(problem_of([&] { write_kit(read_kit(kit), kit); }), "is there already"));
  write_kit(mine.authority().issue("z", "member", {}, clock::now()), kit, true);
  BOOST_TEST(read_kit(kit).identity.node == "z");
}

BOOST_AUTO_TEST_CASE(an_authority_remembers_what_it_made) {  // CY-2
  const own_cluster mine("mine", clock::now() - hours(24 * 10));
  mine.kit("a", clock::now() - hours(24 * 5));
  mine.authority().issue("b", "reader", {"h1", "10.0.0.7", "fd00::7"}, clock::now() - hours(1));
  mine.authority().issue("a", "member", {}, clock::now());
  const authority again(mine.file("authority"));
  BOOST_TEST(again.cluster() == "mine");
  BOOST_TEST(again.revoke("a", clock::now()) == 1U);  // the first one has expired
  BOOST_TEST(again.revoke("a", clock::now()) == 0U);
  BOOST_TEST(again.revoke("nobody", clock::now()) == 0U);
  const auto all = again.all(clock::now());
  BOOST_TEST_REQUIRE(all.size() == 3U);
  BOOST_TEST(all[0].identity.node == "a");
  BOOST_TEST(all[0].has_expired);
  BOOST_TEST(!all[0].is_revoked);
  BOOST_TEST(all[1].identity.node == "b");
  BOOST_TEST(all[1].identity.role == "reader");
  BOOST_TEST(all[1].hosts == (std::vector<std::string>{"h1", "10.0.0.7", "fd00::7"}), boost::test_tools::per_element());
  BOOST_TEST(!all[1].is_revoked);
  BOOST_TEST(all[2].is_revoked);
  BOOST_TEST(!all[2].has_expired);
  BOOST_TEST(all[2].fingerprint().size() == 16U);
}

BOOST_AUTO_TEST_CASE(no_revocation_is_lost) {  // CY-3
  const own_cluster mine;
  std::vector<std::string> nodes;
  for (int i = 0; i < 8; ++i) nodes.push_back("node" + std::to_string(i));
  for (const auto& each : nodes) mine.kit(each);
  std::vector<std::future<std::size_t>> under_way;
  for (const auto& each : nodes)
    under_way.push_back(
      std::async(std::launch::async, [&mine, each] { return authority(mine.file("authority")).revoke(each, clock::now()); }));
  for (auto& each : under_way) BOOST_CHECK_NO_THROW(BOOST_TEST(each.get() == 1U));
  for (const auto& each : mine.authority().all(clock::now())) BOOST_TEST(each.is_revoked, each.identity.node);
}

BOOST_AUTO_TEST_CASE(no_certificate_outlives_its_authority) {  // CY-4
  const auto start = clock::now() - hours(24 * 3600);
  const own_cluster old("mine", start);
  const auto kit = old.authority().issue("a", "member", {}, clock::now());
  BOOST_TEST(until_of(kit.certificate.get()) == until_of(old.authority().certificate()));
  const auto text = problem_of([&] { old.authority().issue("a", "member", {}, start + hours(24 * 3651)); });
  BOOST_TEST(contains(text, "the authority of cluster 'mine' expired at "), text);
  BOOST_TEST(old.authority().all(clock::now()).size() == 1U);
  const auto short_one = old.authority().issue("b", "member", {}, clock::now(), own_cluster::days(1));
  BOOST_TEST(until_of(short_one.certificate.get()) != until_of(old.authority().certificate()));
}

BOOST_AUTO_TEST_CASE(an_issued_certificate_knows_its_time) {
  const own_cluster mine("mine", clock::now() - hours(24 * 30));
  const auto now = clock::now();
  const auto kit = mine.kit("a", now, own_cluster::days(3));
  const auto at = [&](clock::time_point when) { return read_issued(kit, when); };
  BOOST_TEST(at(now).has_begun);
  BOOST_TEST(!at(now).has_expired);
  BOOST_TEST((at(now).left == hours(72)));
  BOOST_TEST((at(now + hours(71)).left == hours(1)));
  BOOST_TEST(!at(now - hours(1)).has_begun);
  BOOST_TEST(at(now + hours(73)).has_expired);
  BOOST_TEST((at(now + hours(73)).left == hours(-1)));
}

BOOST_AUTO_TEST_CASE(a_folder_that_lost_its_records_says_so) {
  const own_cluster mine;
  std::filesystem::remove_all(mine.file("authority/issued"));
  BOOST_TEST(contains(problem_of([&] { mine.authority().all(clock::now()); }), "issued can't be read: No such file"));
  BOOST_TEST(contains(problem_of([&] { mine.authority().revoke("a", clock::now()); }), "issued can't be read: No such file"));
}

BOOST_AUTO_TEST_CASE(names_of_a_wrong_form_are_refused) {
  const own_cluster mine;
  const auto issue = [&](const std::string& node, const std::string& role, const std::string& host) {
    return problem_of([&] { mine.authority().issue(node, role, {host}, clock::now()); });
  };
  for (const auto* name : {"", "a/b", "a,URI:troupe:mine/x", "a b", ".a"}) {
    BOOST_TEST(contains(issue(name, "member", "h1"), "the name of the node"), name);
    BOOST_TEST(contains(issue("a", name, "h1"), "--role"), name);
    BOOST_TEST(contains(problem_of([&] { authority::create(mine.file("new"), name, clock::now()); }), "--cluster"), name);
  }
  for (const auto* host : {"", "h1,URI:troupe:mine/x", "h 1", "h1\n"})
    BOOST_TEST(contains(issue("a", "member", host), "--host"), host);
  BOOST_TEST(mine.authority().all(clock::now()).empty());
}

BOOST_AUTO_TEST_SUITE_END()
