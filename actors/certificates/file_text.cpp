// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/file_text.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <troupe/actors/support/owned_descriptor.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::certificates {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, int problem) {
  throw error(errc::misuse, file.string() + " can't be read: " + std::generic_category().message(problem));
}

}  // namespace

file_text read_file(const std::filesystem::path& file, std::size_t most) {
  const support::owned_descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened) refuse(file, errno);
  file_text result;
  if (::fstat(opened.get(), &result.facts) != 0) refuse(file, errno);
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
    if (came < 0) refuse(file, errno);
    if (came == 0) break;
    filled += static_cast<std::size_t>(came);
  }
  result.text.resize(filled);
  return result;
}

}  // namespace troupe::certificates
