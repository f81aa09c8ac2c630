// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/certificates/authority_test.cpp
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace troupe::certificates {

struct openssl_deleter {
  void operator()(BIO* what) const noexcept { BIO_free_all(what); }
  void operator()(BIGNUM* what) const noexcept { BN_free(what); }
  void operator()(ASN1_STRING* what) const noexcept { ASN1_STRING_free(what); }
  void operator()(EVP_PKEY* what) const noexcept { EVP_PKEY_free(what); }
  void operator()(GENERAL_NAMES* what) const noexcept { GENERAL_NAMES_free(what); }
  void operator()(X509* what) const noexcept { X509_free(what); }
  void operator()(X509_CRL* what) const noexcept { X509_CRL_free(what); }
  void operator()(X509_EXTENSION* what) const noexcept { X509_EXTENSION_free(what); }
  void operator()(X509_REVOKED* what) const noexcept { X509_REVOKED_free(what); }
  void operator()(X509_STORE* what) const noexcept { X509_STORE_free(what); }
  void operator()(X509_STORE_CTX* what) const noexcept { X509_STORE_CTX_free(what); }
};

/// An object of OpenSSL that its owner frees.
template <class T>
using owned = std::unique_ptr<T, openssl_deleter>;

/// Takes the errors of this thread out of OpenSSL's queue. Returns the first one in words, or "no reason is known".
std::string take_problem();

/// The callback for passwords, for functions of OpenSSL that read PEM. Without this callback they would ask the terminal for
/// the password of an encrypted file, and wait.
int no_password(char*, int, int, void*) noexcept;

/// Takes over `what`; throws std::bad_alloc if `what` is null. For results of functions that fail only for lack of memory.
template <class T>
owned<T> made(T* what) {
  if (what == nullptr) {
    take_problem();
    throw std::bad_alloc();
  }
  return owned<T>(what);
}

/// Throws troupe::error (misuse) with the file and the reason.
[[noreturn]] void refuse_file(const std::filesystem::path& file, const std::string& why);

/// The content of a regular file and what the system says about it.
struct file_text {
  std::string text;
  struct stat facts {};
};

/// Throws troupe::error (misuse) with the file and the reason if the file can't be read, is not regular, or has more than
/// `most` bytes.
file_text read_file(const std::filesystem::path& file, std::size_t most);

/// A text that holds a private key. The destructor wipes it.
struct secret_text {
  std::string text;

  explicit secret_text(std::string what) noexcept : text(std::move(what)) {}
  ~secret_text();
  secret_text(secret_text&&) noexcept = default;
};

/// As read_file(). If the file holds a private key, throws also if users other than this process's user and root can change the
/// file or read the key. One group may read a file of root.
secret_text read_secret(const std::filesystem::path& file, std::size_t most);

}  // namespace troupe::certificates
