// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/certificates/authority_test.cpp
#pragma once

#include <filesystem>

#include <troupe/actors/certificates/openssl.hpp>

namespace troupe::certificates {

/// The certificates of a cluster that are no longer valid: a list that the cluster's authority has signed (X.509 CRL, PEM).
/// Any thread may use it.
class revocations {
 public:
  /// Throws troupe::error (misuse), with the file and the reason, if the file is not there, is damaged, or is of another authority.
  revocations(const std::filesystem::path& file, X509* authority);

  bool contains(X509* certificate) const;
  /// Whether this list and `other` are of one authority, which signed this one earlier. Each list of an authority is at least a second
  /// younger than the one before.
  bool is_older_than(const revocations& other) const;

 private:
  owned<X509_CRL> list_;
  owned<X509> authority_;
};

}  // namespace troupe::certificates
