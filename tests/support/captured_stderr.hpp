// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::test {

/// What `run` writes to stderr, up to 4 KiB.
template <class Run>
std::string captured_stderr(Run run) {
  const support::owned_descriptor file(memfd_create("stderr", 0));
  const support::owned_descriptor before(dup(STDERR_FILENO));
  dup2(file.get(), STDERR_FILENO);
  run();
  dup2(before.get(), STDERR_FILENO);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(pread(file.get(), text.data(), text.size(), 0)));
  return text;
}

}  // namespace troupe::test
