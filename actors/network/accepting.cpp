// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/accepting.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>

namespace troupe::network {

void accepting::open_spare() { spare_ = support::owned_descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool accepting::try_accept(socket& result, socket from) {
  result = ::accept4(from, nullptr, nullptr, SOCK_CLOEXEC);
  if (result >= 0) return true;
  const int problem = errno;
  result = caf::io::network::invalid_native_socket;
  if (problem != EMFILE && problem != ENFILE && problem != ENOBUFS && problem != ENOMEM) return false;
  spare_ = {};
  const bool has_ended = static_cast<bool>(support::owned_descriptor(::accept4(from, nullptr, nullptr, SOCK_CLOEXEC)));
  open_spare();
  try {
    on_shortage_(problem);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): without memory nobody can be told
  }
  if (!has_ended) ::poll(nullptr, 0, static_cast<int>(pause.count()));
  return false;
}

}  // namespace troupe::network
