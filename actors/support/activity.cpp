// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/activity.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::support {

std::uint64_t resident_bytes() noexcept {
  const owned_descriptor file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  if (!file || ::read(file.get(), text.data(), text.size() - 1) <= 0) return 0;
  unsigned long long resident = 0;  // in pages; the first number of the file is the size of all memory
  if (std::sscanf(text.data(), "%*u %llu", &resident) != 1) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace troupe::support
