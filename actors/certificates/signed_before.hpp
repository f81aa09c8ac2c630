// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/certificates/refusal_reason_test.cpp
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <set>

#include <troupe/actors/certificates/openssl.hpp>

namespace troupe::certificates {

/// Certificates whose signature by the authority of a cluster was verified before. The signature of such a certificate need not be verified
/// again: a node that connects again shows the same bytes. One object for one authority; any thread may use it.
///   SB-1  contains() is true only for a certificate all of whose bytes, those of the signature too, are those of one that add() got.
///   SB-2  it keeps `most` certificates; one more makes it forget another one.
class signed_before {
 public:
  static constexpr std::size_t most = 4096;

  bool contains(X509* certificate) const;
  void add(X509* certificate);
  std::size_t size() const;

 private:
  using digest = std::array<unsigned char, 32>;  // SHA-256
  static digest digest_of(X509* certificate);

  mutable std::mutex mutex_;  // guards all_
  std::set<digest> all_;
};

}  // namespace troupe::certificates
