// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/credentials_test.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/actors/gate/refusal.hpp>
#include <troupe/messages/mutex.hpp>

struct ssl_session_st;
struct ssl_st;
struct x509_st;

namespace troupe::gate {

/// One end of a TLS session, as credentials use it. The tls_session owns this object. OpenSSL stores a pointer to it as the
/// application data of the session's SSL.
struct proving_end {
  std::shared_ptr<const class credentials> own;
  int socket;
  end which;
  std::string whom;                        // the address that a calling end calls; a session with the same text is resumed
  std::string resumed{};                   // the name of the session that a called end resumes
  refusal problem{};                       // why the other end's certificate is refused
  std::shared_ptr<x509_st> certificate{};  // of the other end, once proven
  std::uint64_t checked_by = 0;            // number of the `state` that has last checked the other end's certificate
  std::chrono::system_clock::time_point checked_at{};  // when the certificate was last checked
};

/// The node's certificate, and the rules by which the node accepts the certificates of others. Both ends of a connection prove
/// by TLS 1.3 who they are. Any thread may use it.
///   CD-1  only a certificate of the cluster's authority, for a node of the cluster, valid now and not revoked, is accepted.
///         This holds also when a session is resumed, and however late the other end lets the handshake end.
///   CD-2  at most `most_sessions` sessions are kept for later connections that this node makes, and as many for later
///         connections that it accepts. When a connection resumes a session, its new session replaces the resumed one.
///   CD-3  a file that changes while the node runs is read again by reload(). A file that can't be used changes nothing, and is
///         read again by each reload() until it can be used.
///   CD-4  a reload() that reads another list or kit shuts down each connection whose other end is refused from then on. A
///         certificate that has expired since the proof ends no connection, because the node may have another certificate by
///         now.
///   CD-5  a list of the same authority that is older than the current list changes nothing, so a revoked certificate stays
///         revoked.
///   CD-6  a node whose own certificate is revoked does not start. A node that runs learns by reload() that its certificate was
///         revoked, has expired, or is about to expire.
///   CD-7  an end whose certificates take more than `longest_certificates` bytes is refused, because they take this memory
///         before the end has proven who it is.
class credentials {
 public:
  static constexpr std::size_t longest_certificates = std::size_t{16} << 10;
  static constexpr std::size_t most_sessions = 1024;

  /// `kit`: what `troupe certs node` made. `revoked`: the authority's list of revoked certificates; empty: no certificate is
  /// revoked. Throws troupe::error (misuse) with the file and the reason if a file can't be used, or if the list names the
  /// kit's certificate.
  explicit credentials(std::filesystem::path kit, std::filesystem::path revoked = {});
  ~credentials();

  /// The identity in the node's certificate. It never changes.
  const certificates::identity& own() const noexcept { return own_; }

  struct reading {
    bool has_changed = false;           // another list of revoked certificates, or another kit, counts from now on
    std::size_t cut = 0;                // how many connections were ended: their nodes are refused from now on
    std::vector<std::string> problems;  // one line for each file that has changed and can't be used, each once
    std::string warning;                // about the node's own certificate (warning_about()); empty: none, or none that is new
  };
  /// Reads the files that have changed since they were last read. One thread at a time may call it.
  reading reload(std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

  /// For tls_session: makes a new SSL. Returns null if there is no memory. `next` lives longer than the SSL.
  ssl_st* new_ssl(proving_end& next) const;
  /// For tls_session: adds an end that has a certificate. The socket of the end stays open until remove(). If the certificate
  /// is refused by now, returns the reason, and does not add the end.
  refusal add(const proving_end& proven) const;
  void remove(const proving_end& gone) const noexcept;

 private:
  struct callbacks;
  struct state;
  struct free_session {
    void operator()(ssl_session_st* what) const noexcept;
  };
  using kept_session = std::unique_ptr<ssl_session_st, free_session>;
  struct named_session {
    std::string name;  // the name that OpenSSL gave the session
    kept_session session;
  };
  /// The facts by which reload() sees that a file has changed.
  struct version {
    std::uint64_t device = 0;
    std::uint64_t number = 0;  // the inode: a file that is put in the place of another one has another number
    std::int64_t changed_ns = 0;
    std::int64_t bytes = 0;
    bool operator==(const version&) const = default;
  };

  static version version_of(const std::filesystem::path& file);
  std::shared_ptr<const state> current() const;
  std::shared_ptr<const state> make_state(const state* before, bool reads_kit, bool reads_revoked) const;
  /// Returns why the certificate is refused; an empty `why` if the certificate is accepted. `code`: of X509_verify_cert(3);
  /// OpenSSL chooses the alert of TLS by this code.
  refusal check(proving_end& whose, x509_st* certificate, int& code) const;
  void keep(const std::string& whom, ssl_session_st* session) const;
  /// Keeps a session of the called end. `resumed`: the name of the session that `session` replaces; empty if there is none.
  void keep_here(std::string name, ssl_session_st* session, const std::string& resumed) const;
  /// The session of this name, which the called end has kept; null if there is none.
  kept_session find_here(const std::string& name) const;

  struct watched_file {
    const std::filesystem::path path;
    version read = version_of(path);  // version of the file in use
    std::string problem{};            // the last problem
  };

  watched_file kit_;  // only reload() changes it, and revoked_; the paths never change
  watched_file revoked_;
  certificates::identity own_;

  mutable checked_mutex mutex_;
  std::shared_ptr<const state> state_ TROUPE_GUARDED_BY(mutex_);
  std::string warning_ TROUPE_GUARDED_BY(mutex_);  // the last warning
  // Of connections that this node made, by `whom`.
  mutable std::map<std::string, kept_session> sessions_ TROUPE_GUARDED_BY(mutex_);
  // Of connections that this node accepted; the oldest first.
  mutable std::list<named_session> sessions_here_ TROUPE_GUARDED_BY(mutex_);
  // Points into sessions_here_.
  mutable std::unordered_map<std::string, std::list<named_session>::iterator> by_name_ TROUPE_GUARDED_BY(mutex_);
  mutable std::set<const proving_end*> proven_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe::gate
