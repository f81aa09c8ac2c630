// SPDX-License-Identifier: BSD-3-Clause
// Reads an input as what the other end sends in the handshake of TLS, and as a certificate.
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>

#include <openssl/x509.h>

#include <troupe/actors/certificates/kit.hpp>
#include <troupe/actors/certificates/refusal_reason.hpp>
#include <troupe/actors/gate/tls_session.hpp>
#include <troupe/actors/support/owned_descriptor.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "fuzzer.hpp"

namespace troupe::fuzz {

namespace {

void read_certificate(std::string_view bytes) {
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
  const std::unique_ptr<X509, void (*)(X509*)> certificate(d2i_X509(nullptr, &from, static_cast<long>(bytes.size())),
                                                           &X509_free);
  if (!certificate) return;
  static const test::own_cluster mine;
  static const auto own = certificates::read_kit(mine.kit("node"));
  static const certificates::revocations revoked(mine.revoked(), own.authority.get());
  const auto reason = certificates::why_refused(certificate.get(), {own.identity.cluster, own.authority.get(), &revoked},
                                                std::chrono::system_clock::now());
  if (reason.text.empty()) std::abort();  // nobody has the key of this authority
}

void shake_hands(std::string_view bytes, gate::end which) {
  static const test::own_cluster mine;
  static const auto own = std::make_shared<gate::credentials>(mine.kit("node"));
  std::array<int, 2> both{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both.data()) != 0) std::abort();
  const support::owned_descriptor here(both[0]);
  const support::owned_descriptor there(both[1]);
  gate::tls_session session(own, here.get(), which);
  session.shake_hands();
  while (!bytes.empty()) {
    const auto sent = ::send(there.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    using progress = gate::tls_session::progress;
    const auto how = session.shake_hands();
    if (how == progress::failed) return;
    if (how == progress::proven) std::abort();  // nobody proves anything without a key
  }
}

}  // namespace

void read_input(std::string_view bytes) {
  const auto kind = take_choice(bytes, 3);
  kind == 0 ? read_certificate(bytes) : shake_hands(bytes, kind == 1 ? gate::end::called : gate::end::calling);
}

}  // namespace troupe::fuzz
