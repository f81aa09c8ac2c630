// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/socket_user_test.cpp
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>

namespace troupe::gate {

/// What the kernel says about a TCP socket of this machine.
struct socket_report {
  enum class kind {
    held,      // a process has the socket; `user` made it
    not_held,  // there is no such socket, or no process has it: it was closed, or it was not accepted yet
    not_told   // the kernel does not say it
  };
  kind what = kind::not_told;
  uid_t user = 0;               // as this process's user namespace sees it
  bool is_established = false;  // connected, and neither end has begun to close
};

/// Asks the kernel about the socket at `here` whose other end is at `there`: by sock_diag(7), or /proc/net/tcp if the kernel
/// lacks sock_diag. If the port of `there` is 0: about the socket that listens at `here`. No privilege is needed, and the other
/// process can't change the answer. Only sockets of this network namespace are found.
socket_report report_on_socket(const sockaddr_storage& here, const sockaddr_storage& there);

/// Whether the number names one user. Inside a user namespace the kernel gives one number, the overflow user, for all users
/// that the namespace does not know.
bool names_somebody(uid_t user);

namespace detail {

/// The two ways to ask the kernel. For tests.
socket_report ask_sock_diag(const sockaddr_storage& here, const sockaddr_storage& there);
socket_report read_proc(const sockaddr_storage& here, const sockaddr_storage& there);

}  // namespace detail

}  // namespace troupe::gate
