// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

#include <troupe/actors/certificates/openssl.hpp>
#include <troupe/actors/certificates/revocations.hpp>
#include <troupe/actors/certificates/signed_before.hpp>

namespace troupe::certificates {

/// Why a certificate is refused.
struct refusal_reason {
  std::string text;  // one line; empty: the certificate is accepted
  int code = 0;      // of X509_verify_cert(3). It chooses the alert of TLS that tells the other end.
};

/// Who lets nodes into a cluster.
struct cluster_facts {
  const std::string& name;
  X509* authority;                       // its certificate
  const revocations* revoked = nullptr;  // may be null
  signed_before* known = nullptr;        // of this authority; null: each signature is verified
};

/// Verifies the certificate of a node: signed by the authority of the cluster itself, for a node of the cluster, valid `now`, and not
/// revoked. Intermediate authorities are not accepted. `theirs` may be null: then no certificate came.
refusal_reason why_refused(X509* theirs, const cluster_facts& own, std::chrono::system_clock::time_point now);

/// A certificate is about to expire when less than a tenth of its life is left, and at most this long.
constexpr std::chrono::days most_warning{30};

/// What whoever runs a node has to know about the node's own certificate, in one line: the certificate was revoked, has expired or is
/// about to expire, and what to do. Empty: nothing is wrong. The text is another one each day, and each hour of the last day.
/// `revoked` may be null.
std::string warning_about(X509* own, const revocations* revoked, std::chrono::system_clock::time_point now);

/// "2026-11-23 17:00:00 UTC".
std::string text_of(const ASN1_TIME* time);

}  // namespace troupe::certificates
