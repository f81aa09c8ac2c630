// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/tls_session.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

namespace troupe::gate {

namespace {

bool may_work_later(int problem) { return problem == EAGAIN || problem == EWOULDBLOCK || problem == EINTR; }

/// The meaning of the alert with which the other end has ended the handshake; null if the alert is none of these.
const char* meaning_of(int alert) {
  switch (alert) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "it says that this node's certificate has expired, or is not valid yet; `troupe certs renew` makes a new one, and "
             "both clocks have to be right";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      return "it says that this node's certificate was revoked; ask whoever has the cluster's authority for a new kit";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "it says that this node's certificate is of another authority: the two nodes are of different clusters";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "it says that this node has sent no certificate";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return "it does not accept this node's certificate; its log says why";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      return "it says that the handshake of TLS failed: this node's first bytes may have been lost";
    default:
      return nullptr;
  }
}

/// The reason why the handshake failed, from OpenSSL's queue of errors.
std::string reason_of(unsigned long code) {
  if (const auto* meaning = meaning_of(ERR_GET_REASON(code))) return meaning;
  switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_HTTP_REQUEST:
      return "it does not speak TLS 1.3: it has no certificate, or is no troupe node";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "it has sent no certificate";
    default:
      break;
  }
  const auto* text = ERR_reason_error_string(code);
  return std::string("TLS failed: ") + (text != nullptr ? text : "for a reason without a name");
}

}  // namespace

/// The BIO by which OpenSSL reads and writes. It reads from the socket. It stores the bytes that OpenSSL writes until flush().
struct tls_session::bio_functions {
  static tls_session& session(BIO* of) { return *static_cast<tls_session*>(BIO_get_data(of)); }

  static int read(BIO* of, char* to, std::size_t bytes, std::size_t* got) {
    BIO_clear_retry_flags(of);
    if (session(of).is_flooded()) return 0;
    if (session(of).is_drained_) {
      BIO_set_retry_read(of);
      return 0;
    }
    const auto came = ::recv(session(of).end_.socket, to, bytes, MSG_DONTWAIT);
    if (came > 0) {
      session(of).is_drained_ = static_cast<std::size_t>(came) < bytes;
      *got = static_cast<std::size_t>(came);
      return 1;
    }
    if (came < 0 && may_work_later(errno))
      BIO_set_retry_read(of);
    else
      session(of).has_ended_ = true;
    return 0;
  }

  static int write(BIO* of, const char* from, std::size_t bytes, std::size_t* put) {
    BIO_clear_retry_flags(of);
    auto& [unsent, begin, is_kept] = session(of).unsent_;
    if (unsent.size() - begin + bytes > most_unsent) return 0;
    try {
      unsent.insert(unsent.end(), from, from + bytes);
    } catch (const std::bad_alloc&) {
      return 0;
    }
    *put = bytes;
    return 1;
  }

  /// Counts the messages of TLS itself (TL-5). OpenSSL calls this function for each message of TLS, and for the header of each
  /// record, that comes or leaves.
  static void saw(int leaves, int, int kind, const void*, std::size_t, SSL*, void* session) {
    auto& of = *static_cast<tls_session*>(session);
    if (leaves == 0 && kind == SSL3_RT_HANDSHAKE && of.is_proven()) ++of.extra_messages_;
  }

  static long control(BIO* of, int what, long, void*) {
    switch (what) {
      case BIO_CTRL_FLUSH:
        return 1;
      case BIO_CTRL_EOF:
        return session(of).has_ended_ ? 1 : 0;
      default:
        return 0;
    }
  }

  /// Returns the functions of the BIO. They are made once and never freed, because threads that still run when the process ends
  /// may have sessions that use them.
  static const BIO_METHOD* all() {
    static BIO_METHOD* const made = [] {
      auto* result = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe");
      if (result == nullptr) throw std::bad_alloc();
      BIO_meth_set_read_ex(result, read);
      BIO_meth_set_write_ex(result, write);
      BIO_meth_set_ctrl(result, control);
      return result;
    }();
    return made;
  }
};

void tls_session::free_ssl::operator()(ssl_st* what) const noexcept { SSL_free(what); }

tls_session::tls_session(std::shared_ptr<const credentials> own, int socket, end which, std::string whom)
    : end_{std::move(own), socket, which, std::move(whom)}, ssl_(end_.own->new_ssl(end_)) {
  auto* bio = BIO_new(bio_functions::all());
  if (bio == nullptr || ssl_ == nullptr) {
    BIO_free(bio);
    ERR_clear_error();
    throw std::bad_alloc();
  }
  // Records are small, and each end waits for the records of the other end. So no record may wait in the kernel until an
  // earlier record has arrived.
  const int at_once = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_msg_callback(ssl_.get(), bio_functions::saw);
  SSL_set_msg_callback_arg(ssl_.get(), this);
}

/// Marks the session as shut down in order, because OpenSSL does not resume other sessions.
tls_session::~tls_session() {
  if (is_proven()) end_.own->remove(end_);
  SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

tls_session::progress tls_session::shake_hands() {
  if (state_ == state::refused || state_ == state::broken) return progress::failed;
  if (!flush() && !may_work_later(errno)) return fail(-1);
  if (state_ == state::proven) return has_unsent() ? progress::wants_to_write : progress::proven;
  is_drained_ = false;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  const bool sent = flush();
  // If this end can't send its last message of the handshake, it has proven nothing to the other end. What the other end has
  // sent does not matter then.
  if (result == 1 && !sent && !may_work_later(errno)) return fail(-1);
  if (result == 1) {
    end_.certificate.reset(SSL_get1_peer_certificate(ssl_.get()), X509_free);
    other_ = certificates::identity_of(end_.certificate.get()).value();  // the certificate has been checked
    end_.problem = end_.own->add(end_);
    if (!end_.problem.why.empty()) return fail(-1);
    state_ = state::proven;
    return sent ? progress::proven : progress::wants_to_write;
  }
  if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ || has_ended_) return fail(result);
  return sent ? progress::wants_to_read : progress::wants_to_write;
}

bool tls_session::is_flooded() const { return extra_messages_ > free_extra_messages + received_ / bytes_for_extra_message; }

bool tls_session::is_resumed() const { return SSL_session_reused(ssl_.get()) == 1; }

/// Whether the reason is an alert of a called end that has not proven who it is. Such an alert is not encrypted.
bool tls_session::is_unproven_alert(unsigned long reason) const {
  return end_.which == end::calling && !is_proven() && ERR_GET_REASON(reason) >= SSL_AD_REASON_OFFSET;
}

tls_session::progress tls_session::fail(int result) {
  const auto code = ERR_peek_last_error();
  if (is_flooded()) end_.problem = {"it sent new keys or tickets of TLS without end"};
  if (end_.problem.why.empty())  // otherwise the check of the certificate has said why
    end_.problem = SSL_get_error(ssl_.get(), result) == SSL_ERROR_SSL && code != 0 && !has_ended_
                     ? refusal{reason_of(code), false, is_unproven_alert(code)}
                     : refusal{"it has ended the connection in the handshake of TLS", true};
  state_ = is_proven() ? state::broken : state::refused;
  send_unsent();  // sends the alert that tells the other end
  ERR_clear_error();
  return progress::failed;
}

ssize_t tls_session::failed_io(int result) {
  const int what = SSL_get_error(ssl_.get(), result);
  if (what == SSL_ERROR_WANT_READ && !has_ended_) {
    errno = EAGAIN;
    return -1;
  }
  if (what == SSL_ERROR_ZERO_RETURN || has_ended_) return 0;
  fail(result);
  errno = EPROTO;
  return -1;
}

ssize_t tls_session::read(const iovec& first, const iovec& second) {
  if (state_ != state::proven) {
    errno = EPROTO;
    return -1;
  }
  std::size_t all = 0;
  is_drained_ = false;
  ERR_clear_error();
  for (const auto& each : {first, second})
    for (std::size_t filled = 0; filled < each.iov_len;) {
      std::size_t came = 0;
      const int result = SSL_read_ex(ssl_.get(), static_cast<char*>(each.iov_base) + filled, each.iov_len - filled, &came);
      if (result != 1) return all > 0 ? static_cast<ssize_t>(all) : failed_io(result);
      filled += came;
      all += came;
      received_ += came;
    }
  return static_cast<ssize_t>(all);
}

ssize_t tls_session::peek(const iovec& into) {
  if (state_ != state::proven) {
    errno = EPROTO;
    return -1;
  }
  std::size_t came = 0;
  is_drained_ = false;
  ERR_clear_error();
  const int result = SSL_peek_ex(ssl_.get(), into.iov_base, into.iov_len, &came);
  return result == 1 ? static_cast<ssize_t>(came) : failed_io(result);
}

bool tls_session::has_unread() const { return SSL_has_pending(ssl_.get()) == 1; }

/// Takes a new key if the next records could be too many for the current key. Returns false if OpenSSL can't take one.
bool tls_session::renew_key() {
  if (records_ + most_taken / SSL3_RT_MAX_PLAIN_LENGTH <= most_records) return true;
  records_ = 0;
  ++key_updates_;
  return SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1;
}

ssize_t tls_session::write(const char* from, std::size_t bytes, bool goes_on) {
  if (!flush()) return -1;
  if (state_ != state::proven) {
    errno = EPROTO;
    return -1;
  }
  std::size_t taken = 0;
  ERR_clear_error();
  const int result = renew_key() ? SSL_write_ex(ssl_.get(), from, std::min(bytes, most_taken), &taken) : 0;
  if (result != 1) {
    fail(result);
    errno = EPROTO;
    return -1;
  }
  records_ += (taken + SSL3_RT_MAX_PLAIN_LENGTH - 1) / SSL3_RT_MAX_PLAIN_LENGTH;
  unsent_.is_kept = goes_on && unsent_.records.size() <= most_kept;
  flush();  // bytes that can't leave now leave later
  return static_cast<ssize_t>(taken);
}

std::optional<refusal> prove_within(tls_session& session, int socket, std::chrono::milliseconds patience) {
  using progress = tls_session::progress;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto how = session.shake_hands();
    if (how == progress::proven) return std::nullopt;
    if (how == progress::failed) return session.problem();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::min(until, std::chrono::steady_clock::now()));
    pollfd watched{socket, static_cast<short>(how == progress::wants_to_read ? POLLIN : POLLOUT), 0};
    if (left.count() == 0 || ::poll(&watched, 1, static_cast<int>(left.count())) == 0)
      return refusal{"its handshake of TLS was not over after " + std::to_string(patience.count()) + " ms", true};
  }
}

bool tls_session::flush() { return unsent_.is_kept || send_unsent(); }

bool tls_session::send_unsent() {
  while (has_unsent()) {
    const auto went = ::send(end_.socket, unsent_.records.data() + unsent_.begin, unsent_.records.size() - unsent_.begin,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (went < 0) return false;
    unsent_.begin += static_cast<std::size_t>(went);
  }
  unsent_.records.clear();
  unsent_.begin = 0;
  return true;
}

}  // namespace troupe::gate
