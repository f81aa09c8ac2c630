// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/gate/socket_user.hpp>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::gate {

namespace {

/// The address and the port of one end of a socket, in the form of sock_diag(7). An IPv4 address inside an IPv6 address is
/// stored as IPv4, because one end of a connection may see the address as IPv4, and the other end inside an IPv6 address.
struct socket_end {
  int family = AF_UNSPEC;
  std::array<std::uint32_t, 4> address{};  // in network order; IPv4 in the first word
  std::uint16_t port = 0;                  // in network order

  friend bool operator==(const socket_end&, const socket_end&) = default;
};

socket_end endpoint_of(const sockaddr_storage& from) {
  socket_end result;
  result.family = from.ss_family;
  if (from.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(from);
    result.address[0] = in.sin_addr.s_addr;
    result.port = in.sin_port;
  } else if (from.ss_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(from);
    std::memcpy(result.address.data(), in.sin6_addr.s6_addr, sizeof result.address);
    result.port = in.sin6_port;
    if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr)) {
      result.family = AF_INET;
      result.address = {result.address[3]};
    }
  }
  return result;
}

struct request {
  nlmsghdr head;
  inet_diag_req_v2 body;
};

request request_for(const socket_end& here, const socket_end& there) {
  request result{};
  result.head.nlmsg_len = sizeof result;
  result.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  result.head.nlmsg_flags = NLM_F_REQUEST;
  result.body.sdiag_family = static_cast<std::uint8_t>(here.family);
  result.body.sdiag_protocol = IPPROTO_TCP;
  result.body.idiag_states = std::numeric_limits<std::uint32_t>::max();
  result.body.id.idiag_sport = here.port;
  result.body.id.idiag_dport = there.port;
  std::copy(here.address.begin(), here.address.end(), std::begin(result.body.id.idiag_src));
  std::copy(there.address.begin(), there.address.end(), std::begin(result.body.id.idiag_dst));
  std::fill(std::begin(result.body.id.idiag_cookie), std::end(result.body.id.idiag_cookie), INET_DIAG_NOCOOKIE);
  return result;
}

/// The report about a socket. A socket without an inode belongs to no process, and the kernel then gives user 0 for it.
socket_report report_of(std::uint32_t user, std::uint64_t inode, int state) {
  if (inode == 0) return {socket_report::kind::not_held};
  return {socket_report::kind::held, static_cast<uid_t>(user), state == TCP_ESTABLISHED};
}

template <class Number>
bool read_number(std::string_view text, Number& to, int base) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), to, base);
  return problem == std::errc{} && end == text.data() + text.size();
}

/// Reads a socket_end as /proc/net/tcp and tcp6 write it: words of the address as numbers of this machine, a colon, the port.
bool read_endpoint(std::string_view text, socket_end& to) {
  const auto colon = text.find(':');
  const std::size_t words = colon / 8;
  std::uint16_t port = 0;
  if (colon == std::string_view::npos || (words != 1 && words != 4) || !read_number(text.substr(colon + 1), port, 16))
    return false;
  to = {words == 1 ? AF_INET : AF_INET6, {}, htons(port)};
  for (std::size_t i = 0; i < words; ++i)
    if (!read_number(text.substr(8 * i, 8), to.address[i], 16)) return false;
  if (words == 4 && to.address[0] == 0 && to.address[1] == 0 && to.address[2] == htonl(0xffff))
    to = {AF_INET, {to.address[3]}, to.port};
  return true;
}

/// How well the socket of a line of the table matches `here` and `there`; 0: not at all. If the port of `there` is 0, a socket
/// that listens is looked for; it may be bound to the wildcard address.
int fit(const socket_end& line_here, const socket_end& line_there, int state, const socket_end& here, const socket_end& there) {
  if (there.port != 0) return line_here == here && line_there == there ? 1 : 0;
  if (state != TCP_LISTEN || line_here.port != here.port) return 0;
  if (line_here == here) return 2;
  const bool is_wildcard = line_here.address == std::array<std::uint32_t, 4>{};
  return is_wildcard && (line_here.family == here.family || here.family == AF_INET) ? 1 : 0;
}

/// Reads one table of sockets. If a line matches better than `best`, updates `best` and `result`. Returns false if there is no
/// table.
bool read_table(const char* path, const socket_end& here, const socket_end& there, int& best, socket_report& result) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return false;
  while (std::getline(file, line)) {
    std::array<std::string_view, 10> fields;
    std::string_view rest = line;
    for (auto& field : fields) {
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      field = rest.substr(0, std::min(rest.find(' '), rest.size()));
      rest.remove_prefix(field.size());
    }
    socket_end line_here;
    socket_end line_there;
    int state = 0;
    std::uint32_t user = 0;
    std::uint64_t inode = 0;
    if (!read_endpoint(fields[1], line_here) || !read_endpoint(fields[2], line_there) || !read_number(fields[3], state, 16) ||
        !read_number(fields[7], user, 10) || !read_number(fields[9], inode, 10))
      continue;
    if (const int how_well = fit(line_here, line_there, state, here, there); how_well > best) {
      best = how_well;
      result = report_of(user, inode, state);
    }
  }
  return true;
}

/// Whether sock_diag(7) finds a socket that exists. A kernel without its module for TCP answers as if no socket existed.
bool finds_own_socket() {
  const support::owned_descriptor own(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage here{};
  here.ss_family = AF_INET;
  reinterpret_cast<sockaddr_in&>(here).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(sockaddr_in);
  auto* address = reinterpret_cast<sockaddr*>(&here);
  if (!own || ::bind(own.get(), address, size) != 0 || ::listen(own.get(), 1) != 0 ||
      ::getsockname(own.get(), address, &size) != 0)
    return false;
  sockaddr_storage nobody{};
  nobody.ss_family = AF_INET;
  return detail::ask_sock_diag(here, nobody).what == socket_report::kind::held;
}

}  // namespace

bool names_somebody(uid_t user) {
  long long overflow = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> overflow;
  if (static_cast<long long>(user) != overflow) return true;
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  std::uint64_t all = 0;
  while (map >> inside >> outside >> count) all += count;
  return all >= std::numeric_limits<std::uint32_t>::max();
}

socket_report detail::ask_sock_diag(const sockaddr_storage& here, const sockaddr_storage& there) {
  const support::owned_descriptor kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const auto question = request_for(endpoint_of(here), endpoint_of(there));
  if (!kernel || ::send(kernel.get(), &question, sizeof question, 0) != static_cast<ssize_t>(sizeof question)) return {};
  // The kernel answers within send().
  alignas(nlmsghdr) std::array<char, 2048> answer;
  const auto came = ::recv(kernel.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  if (came < static_cast<ssize_t>(sizeof(nlmsghdr))) return {};
  const auto* head = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (head->nlmsg_type == SOCK_DIAG_BY_FAMILY && came >= static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) {
    inet_diag_msg found{};
    std::memcpy(&found, NLMSG_DATA(head), sizeof found);
    return report_of(found.idiag_uid, found.idiag_inode, found.idiag_state);
  }
  if (head->nlmsg_type != NLMSG_ERROR || came < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) return {};
  nlmsgerr problem{};
  std::memcpy(&problem, NLMSG_DATA(head), sizeof problem);
  return {problem.error == -ENOENT ? socket_report::kind::not_held : socket_report::kind::not_told};
}

socket_report detail::read_proc(const sockaddr_storage& here, const sockaddr_storage& there) {
  socket_report result{socket_report::kind::not_held};
  int best = 0;
  bool any = false;
  for (const auto* path : {"/proc/net/tcp", "/proc/net/tcp6"})
    any = read_table(path, endpoint_of(here), endpoint_of(there), best, result) || any;
  return any ? result : socket_report{};
}

socket_report report_on_socket(const sockaddr_storage& here, const sockaddr_storage& there) {
  static const bool has_sock_diag = finds_own_socket();
  auto result = has_sock_diag ? detail::ask_sock_diag(here, there) : detail::read_proc(here, there);
  if (result.what == socket_report::kind::held && !names_somebody(result.user)) result.what = socket_report::kind::not_told;
  return result;
}

}  // namespace troupe::gate
