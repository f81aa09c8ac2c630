// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/certificates/refusal_reason_test.cpp, tests/actors/certificates/authority_test.cpp
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>

#include <troupe/actors/certificates/openssl.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::certificates {

/// The revoked certificates of a cluster: a list that the cluster's authority has signed (X.509 CRL, PEM). Any thread may use
/// it.
class revocations {
 public:
  /// Throws troupe::error (misuse), with the file and the reason, if the file is not there, is damaged, or is of another
  /// authority.
  revocations(const std::filesystem::path& file, X509* authority);

  bool contains(X509* certificate) const;
  /// Whether both lists are of one authority, which signed this list before `other`. Each list of an authority is at least a
  /// second younger than the one before.
  bool is_older_than(const revocations& other) const;

 private:
  owned<X509_CRL> list_;
  owned<X509> authority_;
};

/// Remembers certificates whose signature by the authority of a cluster was verified. When a node connects again, it shows the
/// same bytes, so the signature need not be verified again. One object for one authority; any thread may use it.
///   SB-1  contains() is true only for a certificate that has the same bytes, those of the signature included, as one that
///         add() got.
///   SB-2  it keeps at most `most` certificates. Beyond this number, each new certificate replaces another one.
class signed_before {
 public:
  static constexpr std::size_t most = 4096;

  bool contains(X509* certificate) const;
  void add(X509* certificate);
  std::size_t size() const;

 private:
  using digest = std::array<unsigned char, 32>;  // SHA-256
  static digest digest_of(X509* certificate);

  mutable checked_mutex mutex_;
  std::set<digest> all_ TROUPE_GUARDED_BY(mutex_);
};

struct refusal_reason {
  std::string text;  // one line; empty: the certificate is accepted
  int code = 0;      // of X509_verify_cert(3); OpenSSL chooses the alert of TLS for the other end by it
};

/// The facts about a cluster by which the certificate of a node is verified.
struct cluster_facts {
  const std::string& name;
  X509* authority;                       // certificate of the cluster's authority
  const revocations* revoked = nullptr;  // may be null
  signed_before* known = nullptr;        // of this authority; null: each signature is verified
};

/// Verifies the certificate of a node. It has to be signed by the authority of the cluster itself, name a node of the cluster,
/// be valid `now`, and not be revoked. Intermediate authorities are not accepted. `theirs` may be null: then no certificate
/// came.
refusal_reason why_refused(X509* theirs, const cluster_facts& own, std::chrono::system_clock::time_point now);

/// A certificate is about to expire when less than a tenth of its life is left, and not more than this time.
constexpr std::chrono::days most_warning{30};

/// What an operator has to know about the node's own certificate, in one line: the certificate was revoked, has expired or is
/// about to expire, and what to do. Empty: nothing is wrong. The text changes each day, and each hour of the last day.
/// `revoked` may be null.
std::string warning_about(X509* own, const revocations* revoked, std::chrono::system_clock::time_point now);

/// The time as "2026-11-23 17:00:00 UTC".
std::string text_of(const ASN1_TIME* time);

}  // namespace troupe::certificates
