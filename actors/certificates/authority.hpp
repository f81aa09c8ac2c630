// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/certificates/authority_test.cpp
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <troupe/actors/certificates/kit.hpp>
#include <troupe/actors/certificates/openssl.hpp>

namespace troupe::certificates {

struct issued {
  certificates::identity identity;
  std::vector<std::string> hosts;  // names and addresses of the node's host
  owned<X509> certificate;
  bool is_revoked = false;
  bool has_begun = true;
  bool has_expired = false;
  std::chrono::seconds left{};  // until it expires; negative afterwards

  /// From when and until when the certificate is valid, as "2026-11-23 17:00:00 UTC".
  std::string from() const;
  std::string until() const;
  std::string fingerprint() const;
};

/// The authority of a cluster. Whoever has its folder can make certificates, and revoke them.
///   authority.key   private key (EC P-256), mode 0600
///   authority.pem   certificate of the authority; its name is that of the cluster
///   revoked.pem     list of revoked certificates, which nodes read (X.509 CRL)
///   issued/         a copy of each certificate that was made
///   CY-1  a file appears complete or not at all, and no kit is overwritten unless the caller says so.
///   CY-2  a kit is handed out only after a copy of its certificate is in issued/, where revoke() finds the certificates of a
///         node.
///   CY-3  no revocation is lost, also when several processes revoke at the same time.
///   CY-4  no certificate of a node expires later than the certificate of the authority.
///   CY-5  create() never changes the mode of a folder that is there already. If others may use the folder, create() throws.
///   CY-6  an authority that in_memory() made writes no file. So its key is gone when the process ends, however the process
///         ends.
class authority {
 public:
  using time = std::chrono::system_clock::time_point;
  using days = std::chrono::duration<int, std::ratio<86'400>>;

  static constexpr days own_life{3650};
  static constexpr days usual_life{365};
  /// A certificate is valid from this long before it was made, because the clocks of hosts differ.
  static constexpr std::chrono::minutes backdated{10};

  /// Makes the folder and everything in it. Throws troupe::error (misuse) if the folder has an authority already, if others may
  /// use an existing folder, or if a file can't be written.
  static authority create(const std::filesystem::path& folder, const std::string& cluster, time now, days life = own_life);
  /// Makes an authority without a folder, which can't revoke what it has issued. Throws troupe::error (misuse).
  static authority in_memory(const std::string& cluster, time now, days life = own_life);
  /// Opens a folder that create() made. Throws troupe::error (misuse), also if others can read the authority's key.
  explicit authority(const std::filesystem::path& folder);

  const std::string& cluster() const noexcept { return cluster_; }
  X509* certificate() const noexcept { return certificate_.get(); }
  std::filesystem::path revoked_file() const { return folder_ / "revoked.pem"; }

  /// Makes a new key and a certificate for it. `hosts`: names or addresses, for programs that look at them; troupe's nodes do
  /// not. Throws troupe::error (misuse) for a name of a wrong form, or if the authority has expired.
  kit issue(const std::string& node, const std::string& role, const std::vector<std::string>& hosts, time now,
            days life = usual_life) const;
  /// Returns all certificates that the authority has made, the oldest first.
  std::vector<issued> all(time now) const;
  /// Revokes all certificates of the node that have not expired. Returns how many. Throws troupe::error (misuse).
  std::size_t revoke(const std::string& node, time now) const;

 private:
  authority(std::filesystem::path folder, owned<EVP_PKEY> key, owned<X509> certificate);
  owned<X509_CRL> read_list() const;

  std::filesystem::path folder_;
  owned<EVP_PKEY> key_;
  owned<X509> certificate_;
  std::string cluster_;
};

/// Reads the first certificate of a file, which may be a kit. Throws troupe::error (misuse) if the file has no certificate, or
/// the certificate is not that of a node.
issued read_issued(const std::filesystem::path& file, authority::time now);

/// Until when the certificate is valid, as "2026-11-23 17:00:00 UTC".
std::string until_of(X509* certificate);
/// The first 16 hexadecimal digits of the SHA-256 of the certificate.
std::string fingerprint_of(X509* certificate);

/// Writes the kit to a new file of mode 0600. `replace`: overwrites a file that is there already. Throws troupe::error
/// (misuse).
void write_kit(const kit& what, const std::filesystem::path& file, bool replace = false);

}  // namespace troupe::certificates
