// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/kit.hpp>

#include <openssl/pem.h>

#include <utility>

#include <troupe/actors/certificates/refusal_reason.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::certificates {

constexpr std::size_t most_of_kit = std::size_t{256} << 10;

kit read_kit(const std::filesystem::path& file, std::chrono::system_clock::time_point now) {
  const auto secret = read_secret(file, most_of_kit);
  const auto source = made(BIO_new_mem_buf(secret.text.data(), static_cast<int>(secret.text.size())));
  const char* const expected =
    "expected a kit that `troupe certs node` made: a private key, the node's certificate, the authority's";
  kit result;
  result.key.reset(PEM_read_bio_PrivateKey(source.get(), nullptr, no_password, nullptr));
  if (!result.key) refuse_file(file, std::string("no private key is in it (") + take_problem() + "); " + expected);
  for (auto* each : {&result.certificate, &result.authority}) {
    each->reset(PEM_read_bio_X509(source.get(), nullptr, no_password, nullptr));
    if (!*each)
      refuse_file(file, std::string("a certificate is missing in it, or damaged (") + take_problem() + "); " + expected);
  }
  if (X509_check_private_key(result.certificate.get(), result.key.get()) != 1) {
    take_problem();
    refuse_file(file, "the private key is not that of the certificate");
  }
  auto who = identity_of(result.certificate.get());
  if (!who) refuse_file(file, "the certificate is not that of a node: it names no cluster, node and role");
  result.identity = std::move(*who);
  if (const auto why = why_refused(result.certificate.get(), {result.identity.cluster, result.authority.get()}, now);
      !why.text.empty())
    refuse_file(file, why.text);
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
