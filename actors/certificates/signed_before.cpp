// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/signed_before.hpp>

#include <new>

namespace troupe::certificates {

bool signed_before::contains(X509* certificate) const {
  const auto which = digest_of(certificate);
  const std::lock_guard lock(mutex_);
  return all_.contains(which);
}

void signed_before::add(X509* certificate) {
  const auto which = digest_of(certificate);
  const std::lock_guard lock(mutex_);
  if (all_.size() >= most && !all_.contains(which)) all_.erase(all_.begin());
  all_.insert(which);
}

std::size_t signed_before::size() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

signed_before::digest signed_before::digest_of(X509* certificate) {
  digest result{};
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), result.data(), &size) != 1 || size != result.size()) throw std::bad_alloc();
  return result;
}

}  // namespace troupe::certificates
