// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/openssl.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::certificates {

namespace {

[[noreturn]] void refuse_unread(const std::filesystem::path& file, int problem) {
  throw error(errc::misuse, file.string() + " can't be read: " + std::generic_category().message(problem));
}

/// Refuses a file with a private key if other users can change the file or read the key.
void check_mode(const std::filesystem::path& file, const struct stat& facts) {
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
    refuse_file(file, "the file belongs to user " + std::to_string(facts.st_uid) +
                        ", who can change it; expected this process's user, " + std::to_string(::geteuid()));
  // Tools that distribute secrets make files that belong to root, and that one group can read.
  const unsigned others = facts.st_uid == 0 && ::geteuid() != 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  if ((facts.st_mode & others) == 0) return;
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", facts.st_mode & 07777U);
  refuse_file(file,
              "others can read the private key in it (mode " + std::string(mode.data()) + "); do: chmod 600 " + file.string());
}

}  // namespace

std::string take_problem() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  const auto* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text != nullptr ? text : "no reason is known";
}

int no_password(char*, int, int, void*) noexcept { return 0; }

void refuse_file(const std::filesystem::path& file, const std::string& why) {
  throw error(errc::misuse, file.string() + ": " + why);
}

file_text read_file(const std::filesystem::path& file, std::size_t most) {
  const support::owned_descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened) refuse_unread(file, errno);
  file_text result;
  if (::fstat(opened.get(), &result.facts) != 0) refuse_unread(file, errno);
  if (!S_ISREG(result.facts.st_mode))
    throw error(errc::misuse, file.string() + " is no file that can be read: expected a regular file");
  if (result.facts.st_size > static_cast<off_t>(most))
    throw error(errc::misuse, file.string() + " has " + std::to_string(result.facts.st_size) + " bytes, expected at most " +
                                std::to_string(most));
  result.text.resize(static_cast<std::size_t>(result.facts.st_size));
  std::size_t filled = 0;
  while (filled < result.text.size()) {
    const auto came = ::read(opened.get(), result.text.data() + filled, result.text.size() - filled);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0) refuse_unread(file, errno);
    if (came == 0) break;
    filled += static_cast<std::size_t>(came);
  }
  result.text.resize(filled);
  return result;
}

secret_text::~secret_text() { OPENSSL_cleanse(text.data(), text.size()); }

secret_text read_secret(const std::filesystem::path& file, std::size_t most) {
  auto content = read_file(file, most);
  secret_text result(std::move(content.text));
  if (result.text.find("PRIVATE KEY-----") != std::string::npos) check_mode(file, content.facts);
  return result;
}

}  // namespace troupe::certificates
