// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/revocations.hpp>

#include <openssl/pem.h>

#include <troupe/actors/certificates/file_text.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::certificates {

namespace {

constexpr std::size_t most_of_list = std::size_t{64} << 20;

}  // namespace

revocations::revocations(const std::filesystem::path& file, X509* authority) {
  const auto text = read_file(file, most_of_list).text;
  const auto source = made(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  list_.reset(PEM_read_bio_X509_CRL(source.get(), nullptr, no_password, nullptr));
  if (!list_) throw error(errc::misuse, file.string() + " is no list of revoked certificates: " + take_problem());
  if (X509_NAME_cmp(X509_CRL_get_issuer(list_.get()), X509_get_subject_name(authority)) != 0 ||
      X509_CRL_verify(list_.get(), X509_get0_pubkey(authority)) != 1) {
    take_problem();
    throw error(errc::misuse, file.string() + " is a list of revoked certificates of another authority, or was changed");
  }
  X509_up_ref(authority);
  authority_.reset(authority);
}

bool revocations::contains(X509* certificate) const {
  X509_REVOKED* entry = nullptr;
  return X509_CRL_get0_by_cert(list_.get(), &entry, certificate) == 1;
}

bool revocations::is_older_than(const revocations& other) const {
  return X509_cmp(authority_.get(), other.authority_.get()) == 0 &&
         ASN1_TIME_compare(X509_CRL_get0_lastUpdate(list_.get()), X509_CRL_get0_lastUpdate(other.list_.get())) < 0;
}

}  // namespace troupe::certificates
