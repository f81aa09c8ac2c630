// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/authority.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <limits>
#include <system_error>
#include <utility>

#include <troupe/actors/certificates/refusal_reason.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/durable_file.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::certificates {

namespace {

constexpr std::size_t most_of_one = std::size_t{64} << 10;
constexpr int serial_bytes = 16;
constexpr mode_t only_owner = 0600;
constexpr int longest_host = 253;

[[noreturn]] void refuse(const std::string& why) { throw error(errc::misuse, why); }

/// Throws troupe::error if a function of OpenSSL has failed.
void expect(bool fine, const char* what) {
  if (!fine) refuse(std::string(what) + ": " + take_problem());
}

void check_name(const char* what, const std::string& name) {
  if (!valid_node_name(name))
    refuse(std::string(what) + ": expected 1 to 64 letters, digits, '.', '_' or '-', not beginning with a dot, got '" + name +
           "'");
}

owned<EVP_PKEY> new_key() {
  owned<EVP_PKEY> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  expect(key != nullptr, "no key could be made");
  return key;
}

owned<ASN1_TIME> time_of(authority::time when) {
  return made(ASN1_TIME_set(nullptr, std::chrono::system_clock::to_time_t(when)));
}

void add_extension(X509* to, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX names;
  X509V3_set_ctx(&names, issuer, to, nullptr, nullptr, 0);
  const owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &names, kind, value.c_str()));
  expect(extension != nullptr && X509_add_ext(to, extension.get(), -1) == 1, "an extension of the certificate");
}

/// The alternative names of a node's certificate. Each host was checked before, because a comma in it would begin another name.
std::string names_text(const identity& who, const std::vector<std::string>& hosts) {
  auto text = "URI:" + uri_of_node(who) + ",URI:" + uri_of_role(who);
  for (const auto& host : hosts) {
    in6_addr bytes;
    const bool is_address = ::inet_pton(AF_INET, host.c_str(), &bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), &bytes) == 1;
    text += (is_address ? ",IP:" : ",DNS:") + host;
  }
  return text;
}

void check_host(const std::string& host) {
  if (host.size() > longest_host || !may_be_advertised(host))
    refuse("--host: expected an address or a host name, got '" + host + "'");
}

/// Makes a certificate without extensions and signature. `issuer`: null for a certificate that signs itself. The certificate
/// expires no later than that of its issuer.
owned<X509> begin_certificate(const std::string& name, EVP_PKEY* key, X509* issuer, authority::time now, authority::days life) {
  auto result = made(X509_new());
  std::array<unsigned char, serial_bytes> serial{};
  expect(RAND_bytes(serial.data(), serial_bytes) == 1, "no random number");
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7F) | 0x40);  // positive, and of full length
  const owned<BIGNUM> number(BN_bin2bn(serial.data(), serial_bytes, nullptr));
  expect(number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(result.get())) != nullptr, "the serial number");
  auto* subject = X509_get_subject_name(result.get());
  const auto wished = time_of(now + life);
  const auto* last = issuer != nullptr ? X509_get0_notAfter(issuer) : wished.get();
  expect(X509_set_version(result.get(), X509_VERSION_3) == 1 &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                      0) == 1 &&
           X509_set_issuer_name(result.get(), issuer != nullptr ? X509_get_subject_name(issuer) : subject) == 1 &&
           X509_set1_notBefore(result.get(), time_of(now - authority::backdated).get()) == 1 &&
           X509_set1_notAfter(result.get(), ASN1_TIME_compare(wished.get(), last) > 0 ? last : wished.get()) == 1 &&
           X509_set_pubkey(result.get(), key) == 1,
         "the certificate");
  return result;
}

template <class T>
std::string pem_of(int (*write)(BIO*, const T*), const T* what) {
  const auto target = made(BIO_new(BIO_s_mem()));
  expect(write(target.get(), what) == 1, "PEM");
  char* begin = nullptr;
  const auto bytes = BIO_get_mem_data(target.get(), &begin);
  return {begin, static_cast<std::size_t>(bytes)};
}

void write_file(const std::filesystem::path& file, const std::string& text, mode_t mode = support::open_folder::usual_mode,
                bool replaces = true) {
  try {
    support::durable_file target(support::file_location(file.string()), mode);
    target.write(text.data(), text.size());
    target.commit(replaces);
  } catch (const error& problem) {
    refuse(problem.what());
  }
}

/// Whether the file exists. True also if the system can't tell, because reading the file then gives the reason.
bool is_there(const std::filesystem::path& file) {
  std::error_code problem;
  return std::filesystem::exists(file, problem) || problem;
}

owned<X509> read_certificate(const std::filesystem::path& file) {
  const auto text = read_file(file, most_of_one).text;
  const auto source = made(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  owned<X509> result(PEM_read_bio_X509(source.get(), nullptr, no_password, nullptr));
  if (!result) refuse(file.string() + " holds no certificate: " + take_problem());
  return result;
}

owned<EVP_PKEY> read_key(const std::filesystem::path& file) {
  const auto secret = read_secret(file, most_of_one);
  const auto source = made(BIO_new_mem_buf(secret.text.data(), static_cast<int>(secret.text.size())));
  owned<EVP_PKEY> result(PEM_read_bio_PrivateKey(source.get(), nullptr, no_password, nullptr));
  if (!result) refuse(file.string() + " holds no private key: " + take_problem());
  return result;
}

/// Makes a folder that only its owner may use. A folder that is there already is not changed, because its user may need its
/// mode.
void make_own_folder(const std::filesystem::path& path) {
  const auto folder = path.has_filename() ? path : path.parent_path();  // "a/" means "a"
  std::error_code problem;
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), problem);
  if (problem) refuse(folder.string() + " can't be made: " + problem.message());
  if (::mkdir(folder.c_str(), S_IRWXU) == 0) return;
  struct stat found {};
  if (errno != EEXIST || ::stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode))
    refuse(folder.string() + " can't be made: " + std::generic_category().message(errno));
  if (found.st_uid != ::geteuid() || (found.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    refuse(folder.string() +
           " is there already, and others may use it; expected a new folder, or one of this user with mode 0700");
}

/// Locks the authority's folder. Other processes that change the folder wait until the result is closed.
support::owned_descriptor lock(const std::filesystem::path& folder) {
  support::owned_descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int result = -1;
  do result = opened ? ::flock(opened.get(), LOCK_EX) : -1;
  while (result != 0 && errno == EINTR);
  if (result != 0) refuse(folder.string() + " can't be locked: " + std::generic_category().message(errno));
  return opened;
}

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  constexpr const char* digits = "0123456789abcdef";
  std::string result;
  for (std::size_t i = 0; i < count; ++i) {
    result += digits[bytes[i] >> 4];
    result += digits[bytes[i] & 15];
  }
  return result;
}

std::vector<std::string> hosts_of(X509* certificate) {
  std::vector<std::string> result;
  const owned<GENERAL_NAMES> names(
    static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* each = sk_GENERAL_NAME_value(names.get(), i);
    if (each->type == GEN_DNS) {
      const auto* text = each->d.dNSName;
      result.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                          static_cast<std::size_t>(ASN1_STRING_length(text)));
    } else if (each->type == GEN_IPADD) {
      std::array<char, INET6_ADDRSTRLEN> text{};
      const auto* bytes = each->d.iPAddress;
      const int family = ASN1_STRING_length(bytes) == sizeof(in_addr) ? AF_INET : AF_INET6;
      if (::inet_ntop(family, ASN1_STRING_get0_data(bytes), text.data(), text.size()) != nullptr)
        result.emplace_back(text.data());
    }
  }
  return result;
}

/// Sets the times of the list. The new time is later than the time before, even if a clock was set back, because nodes accept
/// no older list (CD-5 of credentials).
void set_times(X509_CRL* of, authority::time now) {
  auto since = now - authority::backdated;
  if (std::tm before{}; X509_CRL_get0_lastUpdate(of) != nullptr && ASN1_TIME_to_tm(X509_CRL_get0_lastUpdate(of), &before) == 1)
    since = std::max(since, std::chrono::system_clock::from_time_t(::timegm(&before)) + std::chrono::seconds(1));
  expect(X509_CRL_set1_lastUpdate(of, time_of(since).get()) == 1 &&
           X509_CRL_set1_nextUpdate(of, time_of(now + authority::own_life).get()) == 1,
         "the times of the list of revoked certificates");
}

}  // namespace

std::string fingerprint_of(X509* certificate) {
  constexpr std::size_t shown = 8;
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned bytes = 0;
  expect(X509_digest(certificate, EVP_sha256(), sum.data(), &bytes) == 1, "the fingerprint");
  return hexadecimal(sum.data(), shown);
}

std::string until_of(X509* certificate) { return text_of(X509_get0_notAfter(certificate)); }

std::string issued::from() const { return text_of(X509_get0_notBefore(certificate.get())); }
std::string issued::until() const { return until_of(certificate.get()); }
std::string issued::fingerprint() const { return fingerprint_of(certificate.get()); }

authority authority::in_memory(const std::string& cluster, time now, days life) {
  check_name("--cluster", cluster);
  auto key = new_key();
  auto certificate = begin_certificate(cluster, key.get(), nullptr, now, life);
  auto* self = certificate.get();
  add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(self, self, NID_subject_key_identifier, "hash");
  expect(X509_sign(self, key.get(), EVP_sha256()) > 0, "the certificate of the authority");
  return {{}, std::move(key), std::move(certificate)};
}

authority authority::create(const std::filesystem::path& folder, const std::string& cluster, time now, days life) {
  check_name("--cluster", cluster);
  make_own_folder(folder);
  const auto locked = lock(folder);
  if (is_there(folder / "authority.pem") || is_there(folder / "authority.key"))
    refuse(folder.string() +
           " holds an authority already; its certificates would not count any more with a new one. Name another " +
           "folder with --authority, or delete this one");
  make_own_folder(folder / "issued");
  auto result = in_memory(cluster, now, life);
  result.folder_ = folder;
  auto* self = result.certificate();
  auto* key = result.key_.get();
  const auto list = made(X509_CRL_new());
  expect(X509_CRL_set_version(list.get(), X509_CRL_VERSION_2) == 1 &&
           X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(self)) == 1,
         "the list of revoked certificates");
  set_times(list.get(), now);
  expect(X509_CRL_sign(list.get(), key, EVP_sha256()) > 0, "the list of revoked certificates");
  const auto target = made(BIO_new(BIO_s_secmem()));
  expect(PEM_write_bio_PrivateKey(target.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1, "the authority's key");
  char* begin = nullptr;
  const auto bytes = BIO_get_mem_data(target.get(), &begin);
  write_file(folder / "revoked.pem", pem_of(PEM_write_bio_X509_CRL, static_cast<const X509_CRL*>(list.get())));
  const secret_text secret({begin, static_cast<std::size_t>(bytes)});
  write_file(folder / "authority.key", secret.text, only_owner);
  write_file(folder / "authority.pem", pem_of(PEM_write_bio_X509, static_cast<const X509*>(self)));
  return result;
}

authority::authority(const std::filesystem::path& folder)
    : authority(
        folder,
        is_there(folder / "authority.pem")
          ? read_key(folder / "authority.key")
          : throw error(errc::misuse, folder.string() + " holds no authority; make one with `troupe certs init`, or name " +
                                        "its folder with --authority"),
        read_certificate(folder / "authority.pem")) {}

authority::authority(std::filesystem::path folder, owned<EVP_PKEY> key, owned<X509> certificate)
    : folder_(std::move(folder)), key_(std::move(key)), certificate_(std::move(certificate)) {
  std::array<char, 128> name{};
  const int bytes =
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate_.get()), NID_commonName, name.data(), name.size());
  if (bytes > 0) cluster_.assign(name.data(), static_cast<std::size_t>(bytes));
  if (!valid_node_name(cluster_) || X509_check_private_key(certificate_.get(), key_.get()) != 1) {
    take_problem();
    refuse(folder_.string() +
           " is damaged: authority.key is not the key of authority.pem, or that is no certificate of a cluster");
  }
}

kit authority::issue(const std::string& node, const std::string& role, const std::vector<std::string>& hosts, time now,
                     days life) const {
  check_name("the name of the node", node);
  check_name("--role", role);
  for (const auto& each : hosts) check_host(each);
  if (auto when = std::chrono::system_clock::to_time_t(now); X509_cmp_time(X509_get0_notAfter(certificate_.get()), &when) < 0)
    refuse("the authority of cluster '" + cluster_ + "' expired at " + until_of(certificate_.get()) +
           "; make a new one with `troupe certs init`, and new kits for all nodes");
  kit result;
  result.identity = {cluster_, node, role};
  result.key = new_key();
  result.certificate = begin_certificate(node, result.key.get(), certificate_.get(), now, life);
  auto* made_here = result.certificate.get();
  add_extension(made_here, certificate_.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(made_here, certificate_.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(made_here, certificate_.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(made_here, certificate_.get(), NID_subject_key_identifier, "hash");
  add_extension(made_here, certificate_.get(), NID_authority_key_identifier, "keyid:always");
  add_extension(made_here, certificate_.get(), NID_subject_alt_name, names_text(result.identity, hosts));
  expect(X509_sign(made_here, key_.get(), EVP_sha256()) > 0, "the certificate");
  expect(X509_up_ref(certificate_.get()) == 1, "the certificate of the authority");
  result.authority.reset(certificate_.get());
  if (!folder_.empty())
    write_file(folder_ / "issued" / (node + "-" + fingerprint_of(made_here) + ".pem"),
               pem_of(PEM_write_bio_X509, static_cast<const X509*>(made_here)));
  return result;
}

owned<X509_CRL> authority::read_list() const {
  const revocations checked(revoked_file(), certificate_.get());
  const auto text = read_file(revoked_file(), std::numeric_limits<int>::max()).text;
  const auto source = made(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return made(PEM_read_bio_X509_CRL(source.get(), nullptr, no_password, nullptr));
}

issued read_issued(const std::filesystem::path& file, authority::time now) {
  auto when = std::chrono::system_clock::to_time_t(now);
  issued result;
  result.certificate = read_certificate(file);
  auto who = identity_of(result.certificate.get());
  if (!who) refuse(file.string() + " is not the certificate of a node");
  result.identity = std::move(*who);
  result.hosts = hosts_of(result.certificate.get());
  const auto* last = X509_get0_notAfter(result.certificate.get());
  result.has_begun = X509_cmp_time(X509_get0_notBefore(result.certificate.get()), &when) < 0;
  result.has_expired = X509_cmp_time(last, &when) < 0;
  const auto now_text = time_of(now);
  int whole_days = 0;
  int seconds = 0;
  expect(ASN1_TIME_diff(&whole_days, &seconds, now_text.get(), last) == 1, "the times of the certificate");
  result.left = std::chrono::seconds(seconds) + authority::days(whole_days);
  return result;
}

std::vector<issued> authority::all(time now) const {
  if (folder_.empty()) refuse("an authority in memory keeps no certificates");
  const auto list = read_list();
  std::vector<issued> result;
  std::error_code problem;
  const std::filesystem::directory_iterator files(folder_ / "issued", problem);
  if (problem) refuse((folder_ / "issued").string() + " can't be read: " + problem.message());
  for (const auto& each : files) {
    if (each.path().extension() != ".pem") continue;
    auto& next = result.emplace_back(read_issued(each.path(), now));
    X509_REVOKED* entry = nullptr;
    next.is_revoked = X509_CRL_get0_by_cert(list.get(), &entry, next.certificate.get()) == 1;
  }
  std::sort(result.begin(), result.end(), [](const issued& a, const issued& b) {
    const int order = ASN1_TIME_compare(X509_get0_notBefore(a.certificate.get()), X509_get0_notBefore(b.certificate.get()));
    return order != 0 ? order < 0 : a.fingerprint() < b.fingerprint();
  });
  return result;
}

std::size_t authority::revoke(const std::string& node, time now) const {
  if (folder_.empty()) refuse("an authority in memory has no list of revoked certificates");
  const auto locked = lock(folder_);  // otherwise one of two revocations at the same time would be lost
  const auto list = read_list();
  std::size_t count = 0;
  for (const auto& each : all(now)) {
    if (each.identity.node != node || each.is_revoked || each.has_expired) continue;
    auto entry = made(X509_REVOKED_new());
    expect(X509_REVOKED_set_serialNumber(entry.get(), X509_get_serialNumber(each.certificate.get())) == 1 &&
             X509_REVOKED_set_revocationDate(entry.get(), time_of(now).get()) == 1,
           "the list of revoked certificates");
    expect(X509_CRL_add0_revoked(list.get(), entry.get()) == 1, "the list of revoked certificates");
    entry.release();  // NOLINT(bugprone-unused-return-value): the list owns it
    ++count;
  }
  if (count == 0) return 0;
  set_times(list.get(), now);
  expect(X509_CRL_sort(list.get()) == 1 && X509_CRL_sign(list.get(), key_.get(), EVP_sha256()) > 0,
         "the list of revoked certificates");
  write_file(revoked_file(), pem_of(PEM_write_bio_X509_CRL, static_cast<const X509_CRL*>(list.get())));
  return count;
}

void write_kit(const kit& what, const std::filesystem::path& file, bool replace) {
  if (!replace && std::filesystem::exists(std::filesystem::symlink_status(file)))
    refuse(file.string() + " is there already; move it away, or name another file with --out");
  const secret_text secret(text_of(what));
  write_file(file, secret.text, only_owner, replace);
}

}  // namespace troupe::certificates
