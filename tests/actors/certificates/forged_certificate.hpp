// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <openssl/pem.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/certificates/openssl.hpp>

#include "actors/temporary_folder.hpp"

namespace troupe::test {

/// What no authority of troupe makes: a certificate with any names, any use and any issuer.
struct forged_certificate {
  using clock = std::chrono::system_clock;
  template <class T>
  using owned = certificates::owned<T>;
  /// The number of an extension (NID_...) and its value in the words of x509v3_config(5).
  using extension = std::pair<int, std::string>;

  owned<EVP_PKEY> key{EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")};
  owned<X509> certificate{X509_new()};

  /// `issuer`: null for a certificate that signs itself.
  forged_certificate(X509* issuer, EVP_PKEY* signing, const std::string& subject, const std::vector<extension>& extensions,
                     clock::time_point since = clock::now() - std::chrono::hours(1),
                     clock::time_point until = clock::now() + std::chrono::hours(1)) {
    auto* made = certificate.get();
    if (issuer == nullptr) issuer = made;
    if (signing == nullptr) signing = key.get();
    auto* name = X509_get_subject_name(made);
    bool fine = X509_set_version(made, X509_VERSION_3) == 1 && ASN1_INTEGER_set(X509_get_serialNumber(made), 4711) == 1 &&
                X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(subject.c_str()),
                                           -1, -1, 0) == 1 &&
                X509_set_issuer_name(made, X509_get_subject_name(issuer)) == 1 && X509_set_pubkey(made, key.get()) == 1 &&
                ASN1_TIME_set(X509_getm_notBefore(made), clock::to_time_t(since)) != nullptr &&
                ASN1_TIME_set(X509_getm_notAfter(made), clock::to_time_t(until)) != nullptr;
    for (const auto& [kind, value] : extensions) {
      X509V3_CTX names;
      X509V3_set_ctx(&names, issuer, made, nullptr, nullptr, 0);
      const owned<X509_EXTENSION> next(X509V3_EXT_conf_nid(nullptr, &names, kind, value.c_str()));
      fine = fine && next && X509_add_ext(made, next.get(), -1) == 1;
    }
    if (!fine || X509_sign(made, signing, EVP_sha256()) <= 0)
      throw std::runtime_error("no forged certificate: " + certificates::take_problem());
  }
};

inline certificates::owned<EVP_PKEY> read_private_key(const std::string& file) {
  const auto text = read_text(file);
  const auto source = certificates::made(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return certificates::made(PEM_read_bio_PrivateKey(source.get(), nullptr, nullptr, nullptr));
}

}  // namespace troupe::test
