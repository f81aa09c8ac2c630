// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/foreign_memory.hpp>

#include <sys/uio.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include <troupe/messages/messages.hpp>

namespace troupe {

namespace {

void* at(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

}  // namespace

std::uint64_t this_process() noexcept { return static_cast<std::uint64_t>(::getpid()); }

std::optional<error> foreign_memory::read(const memory_mark& given, std::uint64_t address, void* to,
                                          std::uint64_t bytes) const {
  const auto refused = [&](const std::string& why) {
    return error(errc::refused, "the memory of process " + std::to_string(process) + " can't be read: " + why);
  };
  if (process == 0 || process == this_process() || process > std::numeric_limits<::pid_t>::max())
    return refused("the number is that of no other process");
  // The mark is read before and after the elements: the process overwrites it before it frees them.
  memory_mark before{};
  memory_mark after{};
  const std::array<iovec, 3> here = {iovec{before.words.data(), sizeof before.words}, iovec{to, bytes},
                                     iovec{after.words.data(), sizeof after.words}};
  const std::array<iovec, 3> there = {iovec{at(mark), sizeof before.words}, iovec{at(address), bytes},
                                      iovec{at(mark), sizeof after.words}};
  const auto came = ::process_vm_readv(static_cast<::pid_t>(process), here.data(), here.size(), there.data(), there.size(), 0);
  if (came < 0) return refused(std::strerror(errno));
  if (before.words != given.words) return refused("the process does not have the mark that it was given");
  if (static_cast<std::uint64_t>(came) < sizeof before.words + bytes) {
    return error(errc::malformed_message,
                 "of the elements that it offers, the memory of process " + std::to_string(process) + " holds a part only");
  }
  if (after.words != given.words) return refused("the process gave up the mark while the elements were read");
  return std::nullopt;
}

}  // namespace troupe
