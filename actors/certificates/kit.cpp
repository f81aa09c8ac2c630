// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/kit.hpp>

#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include <troupe/actors/certificates/file_text.hpp>
#include <troupe/actors/certificates/refusal_reason.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::certificates {

namespace {

constexpr std::size_t most_of_kit = std::size_t{256} << 10;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw error(errc::misuse, file.string() + ": " + why);
}

/// A key that others can read is a key that others have.
void check_mode(const std::filesystem::path& file, const struct stat& facts) {
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
    refuse(file, "the file belongs to user " + std::to_string(facts.st_uid) +
                   ", who can change it; expected this process's user, " + std::to_string(::geteuid()));
  // Systems that hand out secrets own the files as root, and let one group read them.
  const unsigned others = facts.st_uid == 0 && ::geteuid() != 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  if ((facts.st_mode & others) == 0) return;
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", facts.st_mode & 07777U);
  refuse(file, "others can read the private key in it (mode " + std::string(mode.data()) + "); do: chmod 600 " + file.string());
}

/// The text of a file that holds a private key, wiped at the end.
struct secret_text {
  std::string text;
  ~secret_text() { OPENSSL_cleanse(text.data(), text.size()); }
};

}  // namespace

kit read_kit(const std::filesystem::path& file, std::chrono::system_clock::time_point now) {
  auto content = read_file(file, most_of_kit);
  const secret_text secret{std::move(content.text)};
  check_mode(file, content.facts);
  const auto source = made(BIO_new_mem_buf(secret.text.data(), static_cast<int>(secret.text.size())));
  const auto no_password = [](char*, int, int, void*) { return 0; };
  const char* const expected =
    "expected a kit that `troupe certs node` made: a private key, the node's certificate, the authority's";
  kit result;
  result.key.reset(PEM_read_bio_PrivateKey(source.get(), nullptr, no_password, nullptr));
  if (!result.key) refuse(file, std::string("no private key is in it (") + take_problem() + "); " + expected);
  for (auto* each : {&result.certificate, &result.authority}) {
    each->reset(PEM_read_bio_X509(source.get(), nullptr, no_password, nullptr));
    if (!*each) refuse(file, std::string("a certificate is missing in it, or damaged (") + take_problem() + "); " + expected);
  }
  if (X509_check_private_key(result.certificate.get(), result.key.get()) != 1) {
    take_problem();
    refuse(file, "the private key is not that of the certificate");
  }
  auto who = identity_of(result.certificate.get());
  if (!who) refuse(file, "the certificate is not that of a node: it names no cluster, node and role");
  result.identity = std::move(*who);
  if (const auto why = why_refused(result.certificate.get(), {result.identity.cluster, result.authority.get()}, now);
      !why.text.empty())
    refuse(file, why.text);
  return result;
}

std::string text_of(const kit& what) {
  const auto target = made(BIO_new(BIO_s_secmem()));
  const bool fine = PEM_write_bio_PrivateKey(target.get(), what.key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1 &&
                    PEM_write_bio_X509(target.get(), what.certificate.get()) == 1 &&
                    PEM_write_bio_X509(target.get(), what.authority.get()) == 1;
  if (!fine) throw error(errc::misuse, "the kit of " + what.identity.node + " can't be written: " + take_problem());
  char* begin = nullptr;
  const auto bytes = BIO_get_mem_data(target.get(), &begin);
  return {begin, static_cast<std::size_t>(bytes)};
}

}  // namespace troupe::certificates
