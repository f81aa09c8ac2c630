// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/refusal_reason.hpp>

#include <openssl/err.h>

#include <chrono>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <troupe/actors/certificates/identity.hpp>

#include "actors/certificates/forged_certificate.hpp"
#include "actors/certificates/own_cluster.hpp"
#include "support/contains.hpp"

namespace {

using namespace troupe::certificates;
using troupe::test::contains;
using troupe::test::forged_certificate;
using troupe::test::own_cluster;
using clock = std::chrono::system_clock;
using extensions = std::vector<forged_certificate::extension>;

const std::string names_of_a = "URI:troupe:mine/a,URI:troupe-role:member";

/// The extensions of a node's certificate, with these names.
extensions of_node(const std::string& names) {
  return {{NID_basic_constraints, "critical,CA:FALSE"},   {NID_key_usage, "critical,digitalSignature"},
          {NID_ext_key_usage, "serverAuth,clientAuth"},   {NID_subject_key_identifier, "hash"},
          {NID_authority_key_identifier, "keyid:always"}, {NID_subject_alt_name, names}};
}

extensions with(extensions all, int kind, const std::string& value) {
  for (auto& each : all)
    if (each.first == kind) each.second = value;
  return all;
}

extensions without(extensions all, int kind) {
  std::erase_if(all, [&](const auto& each) { return each.first == kind; });
  return all;
}

/// A cluster `mine`, whose authority signs whatever a test wants.
struct misused_authority {
  own_cluster mine{"mine"};
  X509* authority = mine.authority().certificate();
  owned<EVP_PKEY> key = troupe::test::read_private_key(mine.file("authority/authority.key"));
  const std::string name = "mine";

  forged_certificate sign(const extensions& what) const { return {authority, key.get(), "a", what}; }

  refusal_reason why(X509* theirs, clock::time_point now = clock::now()) const {
    const auto result = why_refused(theirs, {name, authority}, now);
    BOOST_TEST(!contains(result.text, "\n"));
    BOOST_TEST(ERR_peek_error() == 0U);
    BOOST_TEST(result.text.empty() == (result.code == X509_V_OK));
    return result;
  }
  std::string text(const extensions& what) const { return why(sign(what).certificate.get()).text; }
};

std::vector<unsigned char> bytes_of(X509* certificate) {
  std::vector<unsigned char> result(static_cast<std::size_t>(i2d_X509(certificate, nullptr)));
  auto* at = result.data();
  i2d_X509(certificate, &at);
  return result;
}

owned<X509> certificate_in(const std::vector<unsigned char>& bytes) {
  const auto* at = bytes.data();
  owned<X509> result(d2i_X509(nullptr, &at, static_cast<long>(bytes.size())));
  take_problem();
  return result;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(refused_certificates, misused_authority)

BOOST_AUTO_TEST_CASE(a_certificate_with_the_names_and_the_use_of_a_node_is_accepted) {
  BOOST_TEST(text(of_node(names_of_a)) == "");
}

BOOST_AUTO_TEST_CASE(each_certificate_has_one_node_and_one_role) {
  for (const auto* names :
       {"URI:troupe:mine/a", "URI:troupe-role:member", "DNS:mine", "URI:troupe:mine/a,URI:troupe:mine/b,URI:troupe-role:member",
        "URI:troupe:mine/a,URI:troupe:mine/a,URI:troupe-role:member",
        "URI:troupe:mine/a,URI:troupe-role:member,URI:troupe-role:owner", "URI:troupe:mine,URI:troupe-role:member",
        "URI:troupe:mine/,URI:troupe-role:member", "URI:troupe:/a,URI:troupe-role:member",
        "URI:troupe:mine/a/b,URI:troupe-role:member", "URI:troupe:mine/.a,URI:troupe-role:member",
        "URI:troupe:mine/a b,URI:troupe-role:member", "URI:troupe:mine/a%0A,URI:troupe-role:member",
        "URI:troupe:mine/a,URI:troupe-role:", "URI:Troupe:mine/a,URI:troupe-role:member",
        "DNS:troupe:mine/a,URI:troupe-role:member"}) {
    const auto forged = sign(of_node(names));
    BOOST_TEST(!identity_of(forged.certificate.get()).has_value(), names);
    const auto result = why(forged.certificate.get());
    BOOST_TEST(result.text == "the certificate is not that of a node", names);
    BOOST_TEST(result.code == X509_V_ERR_INVALID_PURPOSE);
  }
  BOOST_TEST(!identity_of(nullptr).has_value());
  BOOST_TEST(contains(text(without(of_node(names_of_a), NID_subject_alt_name)), "not that of a node"));
  auto twice = of_node(names_of_a);
  twice.push_back({NID_subject_alt_name, "URI:troupe:mine/b,URI:troupe-role:owner"});
  BOOST_TEST(!identity_of(sign(twice).certificate.get()).has_value());
  BOOST_TEST(text(twice) != "");
}

BOOST_AUTO_TEST_CASE(what_is_in_the_names_beside_node_and_role_changes_nothing) {
  const auto forged = sign(of_node("DNS:h1,IP:10.0.0.7," + names_of_a + ",URI:spiffe://mine/b,email:a@h1"));
  BOOST_TEST((identity_of(forged.certificate.get()) == identity{"mine", "a", "member"}));
  BOOST_TEST(why(forged.certificate.get()).text == "");
}

BOOST_AUTO_TEST_CASE(a_certificate_for_another_use_is_not_that_of_a_node) {
  const auto node = of_node(names_of_a);
  const auto refused = "the certificate of node 'a' of cluster 'mine' is not that of a node";
  for (const auto* use : {"serverAuth", "clientAuth", "codeSigning", "anyExtendedKeyUsage"})
    BOOST_TEST(text(with(node, NID_ext_key_usage, use)) == refused, use);
  BOOST_TEST(text(without(node, NID_ext_key_usage)) == refused);
  BOOST_TEST(text(with(with(node, NID_basic_constraints, "critical,CA:TRUE"), NID_key_usage,
                       "critical,digitalSignature,keyCertSign")) == refused);
  // Without a word on its use a key may be used for everything, but a node signs.
  BOOST_TEST(text(with(node, NID_key_usage, "critical,keyAgreement")) == refused);
}

BOOST_AUTO_TEST_CASE(another_cluster_of_the_same_authority_is_refused) {
  const auto result = why(sign(of_node("URI:troupe:other/a,URI:troupe-role:member")).certificate.get());
  BOOST_TEST(result.text == "the certificate of node 'a' of cluster 'other' is of another cluster than 'mine' here");
  BOOST_TEST(result.code == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT);
}

BOOST_AUTO_TEST_CASE(a_node_and_an_authority_below_the_authority_sign_nothing) {
  const forged_certificate below(authority, key.get(), "below",
                                 {{NID_basic_constraints, "critical,CA:TRUE"},
                                  {NID_key_usage, "critical,keyCertSign"},
                                  {NID_subject_key_identifier, "hash"},
                                  {NID_authority_key_identifier, "keyid:always"}});
  const auto node = sign(of_node(names_of_a));
  const auto expected =
    "the certificate of node 'a' of cluster 'mine' is of another authority than that of cluster 'mine' here";
  for (const auto* issuer : {&below, &node}) {
    const forged_certificate leaf(issuer->certificate.get(), issuer->key.get(), "a", of_node(names_of_a));
    BOOST_TEST(why(leaf.certificate.get()).text == expected);
  }
}

BOOST_AUTO_TEST_CASE(the_name_of_the_authority_without_its_key_is_not_enough) {
  const forged_certificate namesake(nullptr, nullptr, "mine",
                                    {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                     {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                     {NID_subject_key_identifier, "hash"}});
  const auto expected =
    "the certificate of node 'a' of cluster 'mine' is of another authority than that of cluster 'mine' here";
  // With and without a word that the key is that of the real authority.
  BOOST_TEST(
    why(forged_certificate(namesake.certificate.get(), namesake.key.get(), "a", of_node(names_of_a)).certificate.get()).text ==
    expected);
  BOOST_TEST(why(forged_certificate(authority, namesake.key.get(), "a", of_node(names_of_a)).certificate.get()).text ==
             expected);
  const forged_certificate own_word(nullptr, nullptr, "a", without(of_node(names_of_a), NID_authority_key_identifier));
  BOOST_TEST(contains(why(own_word.certificate.get()).text, "of another authority"));
}

BOOST_AUTO_TEST_CASE(a_certificate_is_valid_to_its_last_second) {
  const auto start = clock::from_time_t(clock::to_time_t(clock::now()));
  const auto end = start + std::chrono::hours(1);
  const forged_certificate forged(authority, key.get(), "a", of_node(names_of_a), start, end);
  const std::chrono::seconds second(1);
  BOOST_TEST(contains(why(forged.certificate.get(), start - second).text, "is not valid before "));
  BOOST_TEST(why(forged.certificate.get(), start).text == "");
  BOOST_TEST(why(forged.certificate.get(), end - second).text == "");
  const auto late = why(forged.certificate.get(), end + second);
  BOOST_TEST(contains(late.text, "expired at " + text_of(X509_get0_notAfter(forged.certificate.get()))), late.text);
  BOOST_TEST(contains(late.text, "troupe certs renew"), late.text);
  BOOST_TEST(late.code == X509_V_ERR_CERT_HAS_EXPIRED);
}

// What is not verified again is the signature alone.
BOOST_AUTO_TEST_CASE(a_certificate_that_was_accepted_is_refused_later_for_the_same_reasons_as_a_new_one) {  // SB-1
  const auto start = clock::from_time_t(clock::to_time_t(clock::now()));
  const auto end = start + std::chrono::hours(1);
  const forged_certificate forged(authority, key.get(), "a", of_node(names_of_a), start, end);
  signed_before known;
  const auto again = [&](X509* which, clock::time_point now) {
    return why_refused(which, {name, authority, nullptr, &known}, now);
  };
  auto* const certificate = forged.certificate.get();
  BOOST_TEST(!known.contains(certificate));
  BOOST_TEST(again(certificate, start).text == "");
  BOOST_TEST(known.contains(certificate));
  const std::chrono::hours long_after(24 * 36500);
  for (const auto now : {start - std::chrono::seconds(1), start, end - std::chrono::seconds(1), end,
                         end + std::chrono::seconds(1), start - long_after, end + long_after}) {
    const auto fresh = why(certificate, now);
    const auto known_one = again(certificate, now);
    BOOST_TEST(known_one.text == fresh.text);
    BOOST_TEST(known_one.code == fresh.code);
  }
  const std::string other = "other";
  BOOST_TEST(contains(why_refused(certificate, {other, authority, nullptr, &known}, start).text, "of another cluster"));
  const auto whole = bytes_of(certificate);
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    auto changed = whole;
    changed[at] = static_cast<unsigned char>(changed[at] ^ 1U);
    if (const auto read = certificate_in(changed)) BOOST_TEST(again(read.get(), start).text != "", "byte " << at);
  }
  BOOST_TEST(known.size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_signature_of_a_known_certificate_is_not_verified_again) {
  const forged_certificate own_word(nullptr, nullptr, "a", without(of_node(names_of_a), NID_authority_key_identifier));
  signed_before known;
  const auto text_with = [&] {
    return why_refused(own_word.certificate.get(), {name, authority, nullptr, &known}, clock::now()).text;
  };
  BOOST_TEST(contains(text_with(), "of another authority"));
  BOOST_TEST(known.size() == 0u);
  known.add(own_word.certificate.get());  // which why_refused() does for those alone that it has verified
  BOOST_TEST(text_with() == "");
}

BOOST_AUTO_TEST_CASE(so_many_certificates_are_known_at_once) {  // SB-2
  signed_before known;
  const auto whole = bytes_of(sign(of_node(names_of_a)).certificate.get());
  std::size_t all = 0;
  for (std::size_t at = whole.size() - 30; at < whole.size() && all <= signed_before::most; ++at)  // in the signature
    for (unsigned change = 1; change < 256 && all <= signed_before::most; ++change) {
      auto changed = whole;
      changed[at] = static_cast<unsigned char>(changed[at] ^ change);
      const auto read = certificate_in(changed);
      if (!read) continue;
      known.add(read.get());
      ++all;
    }
  BOOST_TEST(all == signed_before::most + 1);
  BOOST_TEST(known.size() == signed_before::most);
}

BOOST_AUTO_TEST_CASE(times_are_told_in_utc) {
  const auto time = made(ASN1_TIME_set(nullptr, 1'795'453'200));
  BOOST_TEST(text_of(time.get()) == "2026-11-23 17:00:00 UTC");
}

BOOST_AUTO_TEST_CASE(no_byte_of_a_certificate_can_be_changed) {
  const auto whole = bytes_of(sign(of_node(names_of_a)).certificate.get());
  BOOST_TEST(why(certificate_in(whole).get()).text == "");
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const unsigned bit : {0U, 3U, 7U}) {
      auto changed = whole;
      changed[at] = static_cast<unsigned char>(changed[at] ^ (1U << bit));
      if (const auto read = certificate_in(changed)) BOOST_TEST(why(read.get()).text != "", "bit " << bit << " of byte " << at);
    }
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    BOOST_TEST(!certificate_in({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)}), bytes);
}

BOOST_AUTO_TEST_SUITE_END()
