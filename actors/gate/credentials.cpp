// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/credentials.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include <troupe/actors/certificates/kit.hpp>
#include <troupe/actors/certificates/openssl.hpp>
#include <troupe/actors/certificates/refusal_reason.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::gate {

namespace {

/// The ciphers, the fastest first on machines with instructions for AES.
constexpr auto ciphers = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr auto groups = "X25519:P-256";
/// Tells sessions of troupe from those of other programs with the same certificates.
constexpr unsigned char session_context[] = "troupe";
/// The size of OpenSSL's buffer: one read of the socket brings several records of TLS, which have at most 16 KiB each.
constexpr std::size_t read_buffer = std::size_t{128} << 10;

/// Throws troupe::error (misuse) with OpenSSL's reason if `fine` is false.
void expect(bool fine, const std::string& what) {
  if (!fine) throw error(errc::misuse, what + ": " + certificates::take_problem());
}

/// Throws troupe::error (misuse) if there is no such file. `source`: where such a file comes from.
void expect_file(const char* option, const std::filesystem::path& file, const char* source) {
  std::error_code unknown;
  if (std::filesystem::status(file, unknown).type() == std::filesystem::file_type::not_found)
    throw error(errc::misuse, std::string(option) + " " + file.string() + ": there is no such file; " + source);
}

}  // namespace

struct credentials::state {
  struct free_context {
    void operator()(SSL_CTX* what) const noexcept { SSL_CTX_free(what); }
  };

  std::shared_ptr<const certificates::kit> kit;
  std::shared_ptr<certificates::signed_before> known;        // certificates that the kit's authority has signed
  std::shared_ptr<const certificates::revocations> revoked;  // null: no certificate is revoked
  std::unique_ptr<SSL_CTX, free_context> context;
  std::uint64_t number = 1;  // each state has a greater number than the state before it

  refusal check(X509* certificate, int& code, std::chrono::system_clock::time_point at) const {
    const auto reason =
      certificates::why_refused(certificate, {kit->identity.cluster, kit->authority.get(), revoked.get(), known.get()}, at);
    code = reason.code;
    return {reason.text};
  }
};

struct credentials::callbacks {
  static proving_end* end_of(SSL* of) { return static_cast<proving_end*>(SSL_get_app_data(of)); }

  /// Takes the place of X509_verify_cert(3). Returns whether the certificate is accepted.
  static int verify(X509_STORE_CTX* store, void*) {
    auto* session = end_of(static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())));
    int code = X509_V_ERR_UNSPECIFIED;
    try {
      session->problem = session->own->check(*session, X509_STORE_CTX_get0_cert(store), code);
    } catch (const std::exception&) {  // no memory
      X509_STORE_CTX_set_error(store, X509_V_ERR_OUT_OF_MEM);
      return 0;
    }
    X509_STORE_CTX_set_error(store, code);
    return session->problem.why.empty() ? 1 : 0;
  }

  /// The session that a calling end wants to resume. Null if the called end has no session of this name, or if the certificate
  /// of the session is not accepted any more. Then the calling end sends its certificate again, and the check refuses it with a
  /// reason.
  static SSL_SESSION* resume(SSL* of, const unsigned char* name, int bytes, int* copy) {
    *copy = 0;
    auto* owner = end_of(of);
    try {
      owner->resumed.assign(reinterpret_cast<const char*>(name), static_cast<std::size_t>(bytes));
      auto found = owner->own->find_here(owner->resumed);
      int code = 0;
      const bool counts = found && owner->own->check(*owner, SSL_SESSION_get0_peer(found.get()), code).why.empty();
      return counts ? found.release() : nullptr;
    } catch (const std::exception&) {  // no memory
      return nullptr;
    }
  }

  /// Takes over a session that a later connection may resume. Returns 1 if the session was taken over, otherwise 0.
  static int keep(SSL* of, SSL_SESSION* session) {
    const auto* owner = end_of(of);
    if (owner == nullptr || (owner->which == end::calling && owner->whom.empty())) return 0;
    unsigned int bytes = 0;
    const auto* name = SSL_SESSION_get_id(session, &bytes);
    try {
      if (owner->which == end::calling)
        owner->own->keep(owner->whom, session);
      else
        owner->own->keep_here({reinterpret_cast<const char*>(name), bytes}, session,
                              SSL_session_reused(of) == 1 ? owner->resumed : std::string());
      return 1;
    } catch (const std::exception&) {
      return 0;
    }
  }
};

void credentials::free_session::operator()(ssl_session_st* what) const noexcept { SSL_SESSION_free(what); }

credentials::credentials(std::filesystem::path kit, std::filesystem::path revoked)
    : kit_{std::move(kit)}, revoked_{std::move(revoked)} {
  expect_file("--certificates", kit_.path, "`troupe certs node NAME` makes a kit, NAME.pem");
  if (!revoked_.path.empty())
    expect_file("--revoked", revoked_.path, "the list is revoked.pem in the folder of the cluster's authority");
  state_ = make_state(nullptr, true, true);
  own_ = state_->kit->identity;
  if (state_->revoked && state_->revoked->contains(state_->kit->certificate.get()))
    throw error(errc::misuse, kit_.path.string() + ": " +
                                certificates::warning_about(state_->kit->certificate.get(), state_->revoked.get(),
                                                            std::chrono::system_clock::now()) +
                                " (the list is " + revoked_.path.string() + ")");
}

credentials::~credentials() = default;

/// The version of a missing file is empty. An attempt to read the file then tells what is wrong.
credentials::version credentials::version_of(const std::filesystem::path& file) {
  struct stat facts {};
  if (file.empty() || ::stat(file.c_str(), &facts) != 0) return {};
  return {facts.st_dev, facts.st_ino, std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec,
          facts.st_size};
}

std::shared_ptr<const credentials::state> credentials::current() const {
  checked_lock lock(mutex_);
  return state_;
}

std::shared_ptr<const credentials::state> credentials::make_state(const state* before, bool reads_kit,
                                                                  bool reads_revoked) const {
  auto made = std::make_shared<state>();
  if (before != nullptr) made->number = before->number + 1;
  made->kit = reads_kit ? std::make_shared<const certificates::kit>(certificates::read_kit(kit_.path)) : before->kit;
  made->known = reads_kit ? std::make_shared<certificates::signed_before>() : before->known;
  if (!own_.node.empty() && !(made->kit->identity == own_))
    throw error(errc::misuse, kit_.path.string() + " is now the kit of node '" + made->kit->identity.node + "' of the role " +
                                made->kit->identity.role + "; expected one of node '" + own_.node + "' of the role " +
                                own_.role + "; a node that changes its role has to start anew");
  if (!reads_revoked)
    made->revoked = before->revoked;
  else if (!revoked_.path.empty())
    made->revoked = std::make_shared<const certificates::revocations>(revoked_.path, made->kit->authority.get());
  if (before != nullptr && before->revoked && made->revoked && made->revoked->is_older_than(*before->revoked))
    throw error(errc::misuse, revoked_.path.string() + " is an older list of revoked certificates than the one that counts");
  ERR_clear_error();
  made->context.reset(SSL_CTX_new(TLS_method()));
  auto* context = made->context.get();
  if (context == nullptr) throw std::bad_alloc();
  const auto what = kit_.path.string();
  expect(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1, what);
  expect(SSL_CTX_set_ciphersuites(context, ciphers) == 1, what);
  expect(SSL_CTX_set1_groups_list(context, groups) == 1, what);
  expect(SSL_CTX_use_certificate(context, made->kit->certificate.get()) == 1, what);
  expect(SSL_CTX_use_PrivateKey(context, made->kit->key.get()) == 1, what);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, callbacks::verify, nullptr);
  // An end of the connection without close_notify of TLS is no error. A node that ends sends none, and the messages themselves
  // show whether they are complete.
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, read_buffer);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_max_cert_list(context, longest_certificates);
  expect(SSL_CTX_set_session_id_context(context, session_context, sizeof session_context - 1) == 1, what);
  // The called end keeps its sessions, and gives the calling end only their names. If a ticket held the whole session, OpenSSL
  // would write the other end's certificate into each ticket, and read it again at each resumption.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_BOTH | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, callbacks::keep);
  SSL_CTX_sess_set_get_cb(context, callbacks::resume);
  return made;
}

credentials::reading credentials::reload(std::chrono::system_clock::time_point now) {
  reading result;
  const auto kit = version_of(kit_.path);
  const auto revoked = version_of(revoked_.path);
  const auto before = current();
  const bool reads_kit = kit != kit_.read;
  const bool reads_revoked = revoked != revoked_.read;
  std::shared_ptr<const state> after = before;
  // A file that can't be used is read again by the next reload(), because the cause may pass: for example, no descriptor was
  // left. The problem is reported once.
  const auto read = [&](bool is_kit, std::string& problem) {
    try {
      after = make_state(after.get(), is_kit, !is_kit);
      problem.clear();
      return result.has_changed = true;
    } catch (const std::exception& refused) {
      if (problem != refused.what()) result.problems.push_back(problem = refused.what());
      return false;
    }
  };
  const bool kit_counts = reads_kit && read(true, kit_.problem);
  const bool revoked_counts = reads_revoked && read(false, revoked_.problem);
  auto warning = certificates::warning_about(after->kit->certificate.get(), after->revoked.get(), now);
  checked_lock lock(mutex_);
  if (warning != warning_ && !warning.empty()) result.warning = kit_.path.string() + ": " + warning;
  warning_ = std::move(warning);
  if (kit_counts) kit_.read = kit;
  if (revoked_counts) revoked_.read = revoked;
  if (!result.has_changed) return result;
  state_ = std::move(after);
  sessions_.clear();
  sessions_here_.clear();
  by_name_.clear();
  for (const auto* each : proven_)
    if (int code = 0; !state_->check(each->certificate.get(), code, each->checked_at).why.empty()) {
      ::shutdown(each->socket, SHUT_RDWR);
      ++result.cut;
    }
  return result;
}

refusal credentials::check(proving_end& whose, x509_st* certificate, int& code) const {
  const auto now = current();
  whose.checked_by = now->number;
  whose.checked_at = std::chrono::system_clock::now();
  return now->check(certificate, code, whose.checked_at);
}

ssl_st* credentials::new_ssl(proving_end& next) const {
  auto* made_here = SSL_new(current()->context.get());
  if (made_here == nullptr) return nullptr;
  SSL_set_app_data(made_here, &next);
  if (next.which == end::called) {
    SSL_set_accept_state(made_here);
    return made_here;
  }
  SSL_set_connect_state(made_here);
  kept_session found;
  {
    checked_lock lock(mutex_);
    const auto at = sessions_.find(next.whom);
    if (at == sessions_.end() || SSL_SESSION_up_ref(at->second.get()) != 1) return made_here;
    found.reset(at->second.get());
  }
  int code = 0;
  if (check(next, SSL_SESSION_get0_peer(found.get()), code).why.empty()) SSL_set_session(made_here, found.get());
  ERR_clear_error();
  return made_here;
}

void credentials::keep(const std::string& whom, ssl_session_st* session) const {
  checked_lock lock(mutex_);
  if (sessions_.size() >= most_sessions && !sessions_.contains(whom)) sessions_.erase(sessions_.begin());
  sessions_[whom].reset(session);
}

void credentials::keep_here(std::string name, ssl_session_st* session, const std::string& resumed) const {
  checked_lock lock(mutex_);
  const auto drop = [this](std::list<named_session>::iterator which) TROUPE_REQUIRES(mutex_) {
    by_name_.erase(which->name);
    sessions_here_.erase(which);
  };
  for (const auto* each : {&resumed, &std::as_const(name)})
    if (const auto known = by_name_.find(*each); known != by_name_.end()) drop(known->second);
  if (sessions_here_.size() >= most_sessions) drop(sessions_here_.begin());
  sessions_here_.push_back({name, nullptr});
  const auto added = std::prev(sessions_here_.end());
  by_name_.emplace(std::move(name), added);
  added->session.reset(session);  // last: if a line above throws, the session still belongs to OpenSSL
}

credentials::kept_session credentials::find_here(const std::string& name) const {
  checked_lock lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return {};
  auto* session = found->second->session.get();
  return kept_session(session != nullptr && SSL_SESSION_up_ref(session) == 1 ? session : nullptr);
}

refusal credentials::add(const proving_end& proven) const {
  checked_lock lock(mutex_);
  refusal why;
  // Checks the certificate again if files were read since the last check, because the other end chooses when its handshake
  // ends.
  if (int code = 0; proven.checked_by != state_->number)
    why = state_->check(proven.certificate.get(), code, std::chrono::system_clock::now());
  if (why.why.empty()) proven_.insert(&proven);
  return why;
}

void credentials::remove(const proving_end& gone) const noexcept {
  checked_lock lock(mutex_);
  proven_.erase(&gone);
}

}  // namespace troupe::gate
