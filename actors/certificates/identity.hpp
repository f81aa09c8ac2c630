// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/certificates/refusal_reason_test.cpp
#pragma once

#include <optional>
#include <string>

struct x509_st;

namespace troupe::certificates {

/// The identity in a certificate. All three fields have the form of a node's name (valid_node_name).
struct identity {
  std::string cluster;
  std::string node;
  std::string role;  // a policy gives rights to roles

  bool operator==(const identity&) const = default;
};

/// Reads the identity out of the URIs `troupe:CLUSTER/NODE` and `troupe-role:ROLE` in the certificate's subject alternative
/// names. Nothing if there is not exactly one of each, or if a name has another form.
std::optional<identity> identity_of(x509_st* certificate);

/// The URIs of an identity, as they stand in a certificate.
std::string uri_of_node(const identity& who);
std::string uri_of_role(const identity& who);

}  // namespace troupe::certificates
