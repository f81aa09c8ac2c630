// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/refusal_reason.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <new>
#include <optional>

#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::certificates {

namespace {

constexpr std::size_t most_of_list = std::size_t{64} << 20;

struct chain_result {
  int code;
  bool is_authority;  // the authority's own certificate is the cause
};

/// Verifies the chain of two certificates by OpenSSL: the certificate of the node, and the certificate of the authority.
chain_result verify_chain(X509* theirs, X509* authority, std::chrono::system_clock::time_point now) {
  const auto trusted = made(X509_STORE_new());
  const auto check = made(X509_STORE_CTX_new());
  if (X509_STORE_add_cert(trusted.get(), authority) != 1 ||
      X509_STORE_CTX_init(check.get(), trusted.get(), theirs, nullptr) != 1)
    throw std::bad_alloc();
  auto* how = X509_STORE_CTX_get0_param(check.get());
  X509_VERIFY_PARAM_set_flags(how, X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_time(how, std::chrono::system_clock::to_time_t(now));
  const bool fine = X509_verify_cert(check.get()) == 1;
  const int code = X509_STORE_CTX_get_error(check.get());
  const bool is_authority = X509_STORE_CTX_get_error_depth(check.get()) > 0;
  take_problem();
  return {fine ? X509_V_OK : code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code, !fine && is_authority};
}

int check_time(X509* certificate, std::time_t now) {
  const int after_begin = X509_cmp_time(X509_get0_notBefore(certificate), &now);
  const int after_end = X509_cmp_time(X509_get0_notAfter(certificate), &now);
  if (after_begin == 0) return X509_V_ERR_ERROR_IN_CERT_NOT_BEFORE_FIELD;
  if (after_begin > 0) return X509_V_ERR_CERT_NOT_YET_VALID;
  if (after_end == 0) return X509_V_ERR_ERROR_IN_CERT_NOT_AFTER_FIELD;
  return after_end < 0 ? X509_V_ERR_CERT_HAS_EXPIRED : X509_V_OK;
}

/// As verify_chain(), for a certificate that verify_chain() has accepted before. Only the times are checked again.
chain_result verify_again(X509* theirs, X509* authority, std::chrono::system_clock::time_point now) {
  const auto seconds = std::chrono::system_clock::to_time_t(now);
  const int of_authority = check_time(authority, seconds);
  if (of_authority != X509_V_OK) return {of_authority, true};
  return {check_time(theirs, seconds), false};
}

chain_result verify(X509* theirs, const cluster_facts& own, std::chrono::system_clock::time_point now) {
  if (own.known != nullptr && own.known->contains(theirs)) return verify_again(theirs, own.authority, now);
  const auto result = verify_chain(theirs, own.authority, now);
  if (own.known != nullptr && result.code == X509_V_OK) own.known->add(theirs);
  return result;
}

/// Whether the certificate is made for nodes: its key may sign handshakes at both ends of a connection, and no other
/// certificates.
bool is_for_nodes(X509* certificate) {
  constexpr std::uint32_t both = XKU_SSL_SERVER | XKU_SSL_CLIENT;
  return X509_check_ca(certificate) == 0 && (X509_get_key_usage(certificate) & X509v3_KU_DIGITAL_SIGNATURE) != 0 &&
         (X509_get_extension_flags(certificate) & EXFLAG_XKUSAGE) != 0 &&
         (X509_get_extended_key_usage(certificate) & both) == both;
}

std::string name_of(const std::optional<identity>& who) {
  return who ? "the certificate of node '" + who->node + "' of cluster '" + who->cluster + "'" : "the certificate";
}

constexpr auto clock_advice = "; is this host's clock right?";

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

bool signed_before::contains(X509* certificate) const {
  const auto which = digest_of(certificate);
  const checked_lock lock(mutex_);
  return all_.contains(which);
}

void signed_before::add(X509* certificate) {
  const auto which = digest_of(certificate);
  const checked_lock lock(mutex_);
  if (all_.size() >= most && !all_.contains(which)) all_.erase(all_.begin());
  all_.insert(which);
}

std::size_t signed_before::size() const {
  const checked_lock lock(mutex_);
  return all_.size();
}

signed_before::digest signed_before::digest_of(X509* certificate) {
  digest result{};
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), result.data(), &size) != 1 || size != result.size()) throw std::bad_alloc();
  return result;
}

std::string text_of(const ASN1_TIME* time) {
  std::tm moment{};
  if (ASN1_TIME_to_tm(time, &moment) != 1) return "an unknown time";
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &moment);
  return text.data();
}

refusal_reason why_refused(X509* theirs, const cluster_facts& own, std::chrono::system_clock::time_point now) {
  if (theirs == nullptr) return {"no certificate came", X509_V_ERR_UNSPECIFIED};
  const auto who = identity_of(theirs);
  const auto what = name_of(who);
  auto now_text = made(ASN1_TIME_set(nullptr, std::chrono::system_clock::to_time_t(now)));
  const auto [code, is_authority] = verify(theirs, own, now);
  auto* late = is_authority ? own.authority : theirs;
  const auto cause = is_authority ? "the authority of cluster '" + own.name + "'" : what;
  switch (code) {
    case X509_V_OK:
      break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return {cause + " expired at " + text_of(X509_get0_notAfter(late)) + ", and here it is " + text_of(now_text.get()) +
                (is_authority ? "; make a new one with `troupe certs init`" : "; make a new one with `troupe certs renew`") +
                clock_advice,
              code};
    case X509_V_ERR_CERT_NOT_YET_VALID:  // TLS has one alert for "expired" and "not yet valid"
      return {cause + " is not valid before " + text_of(X509_get0_notBefore(late)) + ", and here it is " +
                text_of(now_text.get()) + clock_advice,
              X509_V_ERR_CERT_HAS_EXPIRED};
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return {what + " is of another authority than that of cluster '" + own.name + "' here",
              X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT};
    default:
      return {what + " is not accepted: " + X509_verify_cert_error_string(code), code};
  }
  if (!who || !is_for_nodes(theirs)) return {what + " is not that of a node", X509_V_ERR_INVALID_PURPOSE};
  if (who->cluster != own.name)
    return {what + " is of another cluster than '" + own.name + "' here", X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT};
  if (own.revoked != nullptr && own.revoked->contains(theirs)) return {what + " was revoked", X509_V_ERR_CERT_REVOKED};
  return {};
}

std::string warning_about(X509* own, const revocations* revoked, std::chrono::system_clock::time_point now) {
  using namespace std::chrono_literals;
  const auto who = identity_of(own);
  const auto help = "ask whoever has the cluster's authority for a new kit: troupe certs renew " + (who ? who->node : "NAME");
  if (revoked != nullptr && revoked->contains(own))
    return "this node's certificate was revoked, and other nodes refuse it; " + help;
  const auto seconds_to = [&](const ASN1_TIME* time) {
    int days = 0;
    int seconds = 0;
    const auto here = made(ASN1_TIME_set(nullptr, std::chrono::system_clock::to_time_t(now)));
    ASN1_TIME_diff(&days, &seconds, here.get(), time);
    return std::chrono::seconds(std::chrono::days(days)) + std::chrono::seconds(seconds);
  };
  const auto* end = X509_get0_notAfter(own);
  const auto left = seconds_to(end);
  if (left < 0s) return "this node's certificate expired at " + text_of(end) + ", and other nodes refuse it; " + help;
  const auto life = left - seconds_to(X509_get0_notBefore(own));
  if (left > std::min<std::chrono::seconds>(most_warning, life / 10)) return {};
  const auto days = std::chrono::floor<std::chrono::days>(left).count();
  const auto hours = std::chrono::floor<std::chrono::hours>(left).count();
  const auto in = days > 1    ? std::to_string(days) + " days"
                  : hours > 1 ? std::to_string(hours) + " hours"
                              : "less than two hours";
  return "this node's certificate expires in " + in + ", at " + text_of(end) + "; " + help;
}

}  // namespace troupe::certificates
