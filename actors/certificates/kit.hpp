// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/certificates/authority_test.cpp
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/actors/certificates/openssl.hpp>

namespace troupe::certificates {

/// A node's private key, its certificate, and the certificate of its cluster's authority. A kit's file has these three in this
/// order, as PEM.
struct kit {
  certificates::identity identity;
  owned<EVP_PKEY> key;
  owned<X509> certificate;
  owned<X509> authority;
};

/// Reads a kit's file and checks it. Throws troupe::error (misuse), with the file and one reason in one line: the file is not
/// there, others may read the key, something is damaged or missing, the key is not that of the certificate, or the certificate
/// is not valid `now`.
kit read_kit(const std::filesystem::path& file, std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

/// The kit as the text of a file. The text holds the private key.
std::string text_of(const kit& what);

}  // namespace troupe::certificates
