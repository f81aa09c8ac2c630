// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/memory_channel.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

#include <troupe/actors/gate/socket_user.hpp>

namespace troupe::network {

namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// A number that travels with the memory. Memory that comes with another number has another layout and is not used.
constexpr std::uint64_t greeting = 0x31'65'6e'61'6c'20'75'6f;

/// Address and port as text, empty for an address that is not on loopback. An IPv4 address inside an IPv6 address is written as
/// IPv4, because each end of a connection may see another form.
std::string text_of(const sockaddr_storage& from) {
  std::uint32_t v4 = 0;
  std::uint16_t port = 0;
  if (from.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(from);
    v4 = in.sin_addr.s_addr;
    port = in.sin_port;
  } else if (from.ss_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(from);
    port = in.sin6_port;
    if (IN6_IS_ADDR_LOOPBACK(&in.sin6_addr)) return "[::1]:" + std::to_string(ntohs(port));
    if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr)) std::memcpy(&v4, in.sin6_addr.s6_addr + 12, sizeof v4);
  }
  if ((ntohl(v4) >> 24) != 127) return {};
  return std::to_string(ntohl(v4)) + ":" + std::to_string(ntohs(port));
}

std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un result{};
  result.sun_family = AF_UNIX;
  const auto bytes = std::min(name.size(), sizeof result.sun_path - 1);
  std::memcpy(result.sun_path + 1, name.data(), bytes);
  return {result, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes)};
}

/// Whether this process may open a socket for the channel of `connection`. A new descriptor gets the lowest free number, so a
/// high number shows that many descriptors are in use. A connection whose number is in the upper half of the limit gets no
/// channel, because that half is kept for connections.
bool may_open_socket(int connection) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(connection) < limit.rlim_cur / 2;
}

std::optional<ucred> other_end_of(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 ? std::optional(other) : std::nullopt;
}

bool is_of_this_user(int socket) {
  const auto other = other_end_of(socket);
  return other && other->uid == ::geteuid() && gate::names_somebody(other->uid);
}

/// A message of a Unix socket that holds the greeting and one descriptor.
struct parcel {
  std::uint64_t word = greeting;
  iovec content{&word, sizeof word};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};

  parcel() {
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_LEN(sizeof(int));  // space for one descriptor
  }
};

bool give(int socket, const support::owned_descriptor& memory) {
  parcel all;
  auto* head = CMSG_FIRSTHDR(&all.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = memory.get();
  std::memcpy(CMSG_DATA(head), &number, sizeof number);
  return ::sendmsg(socket, &all.message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof all.word);
}

/// Receives memory. Returns nothing if no message has come yet, and an empty descriptor if the message holds no memory for a
/// channel.
std::optional<support::owned_descriptor> get(int socket) {
  parcel all;
  const auto came = ::recvmsg(socket, &all.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (came < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  support::owned_descriptor memory;
  const auto* head = came > 0 ? CMSG_FIRSTHDR(&all.message) : nullptr;
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(sizeof(int))) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(head), sizeof number);
    memory = support::owned_descriptor(number);
  }
  if (came != static_cast<ssize_t>(sizeof all.word) || all.word != greeting) memory = support::owned_descriptor();
  return memory;
}

}  // namespace

struct memory_channel::layout {
  std::atomic<std::uint32_t> joined{0};
  ring_control controls[2];  // [0]: of the ring that the end `opened` writes; [1]: of the ring that `joined` writes
  alignas(4096) char bytes[2][ring_writer::capacity];
};

support::owned_descriptor memory_channel::make_memory() {
  support::owned_descriptor memory(::memfd_create("troupe channel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), sizeof(layout)) != 0 || ::fcntl(memory.get(), F_ADD_SEALS, seals) != 0)
    return support::owned_descriptor();
  return memory;
}

std::unique_ptr<memory_channel> memory_channel::map(const support::owned_descriptor& memory, end which) {
  const int sealed = ::fcntl(memory.get(), F_GET_SEALS);
  if (sealed < 0 || (sealed & seals) != seals) return nullptr;
  struct stat found {};  // checked after the seals, because without seals the size may change
  if (::fstat(memory.get(), &found) != 0 || found.st_size != static_cast<off_t>(sizeof(layout))) return nullptr;
  void* at = ::mmap(nullptr, sizeof(layout), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  if (which == end::joined) return std::unique_ptr<memory_channel>(new memory_channel(static_cast<layout*>(at), which));
  auto* shared = new (at) layout;  // leaves `bytes` unwritten, so unused pages take no memory
  return std::unique_ptr<memory_channel>(new memory_channel(shared, which));
}

memory_channel::memory_channel(layout* shared, end which)
    : incoming(shared->controls[which == end::opened ? 1 : 0], shared->bytes[which == end::opened ? 1 : 0]),
      outgoing(shared->controls[which == end::opened ? 0 : 1], shared->bytes[which == end::opened ? 0 : 1]),
      shared_(shared) {
  if (which == end::joined) shared->joined.store(1, std::memory_order_release);
}

memory_channel::~memory_channel() { ::munmap(shared_, sizeof(layout)); }

bool memory_channel::is_joined() const { return shared_->joined.load(std::memory_order_acquire) != 0; }

std::string channel_listener::name(int connection, bool is_caller) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t size = sizeof here;
  if (::getsockname(connection, reinterpret_cast<sockaddr*>(&here), &size) != 0) return {};
  size = sizeof there;
  if (::getpeername(connection, reinterpret_cast<sockaddr*>(&there), &size) != 0) return {};
  const auto caller = text_of(is_caller ? here : there);
  const auto called = text_of(is_caller ? there : here);
  return caller.empty() || called.empty() ? std::string{} : "troupe/" + caller + "/" + called;
}

std::uint64_t process_beyond(const support::owned_descriptor& bell) {
  const auto other = other_end_of(bell.get());
  return other && other->pid > 0 ? static_cast<std::uint64_t>(other->pid) : 0;
}

std::optional<channel_listener> channel_listener::open(int connection) {
  const auto name = channel_listener::name(connection, true);
  if (name.empty() || !may_open_socket(connection)) return std::nullopt;
  support::owned_descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto [address, size] = address_of(name);
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener.get(), 1) != 0)
    return std::nullopt;
  return channel_listener(std::move(listener));
}

channel_with_bell channel_listener::answer() {
  if (!visitor_) {
    support::owned_descriptor came(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!came || !is_of_this_user(came.get())) return {};
    visitor_ = std::move(came);
  }
  const auto memory = get(visitor_.get());
  if (!memory) return {};
  support::owned_descriptor bell = std::move(visitor_);
  auto channel = memory_channel::map(*memory, memory_channel::end::joined);
  if (!channel) return {};
  return {std::move(channel), std::move(bell)};
}

channel_with_bell channel_listener::connect(int connection) {
  const auto name = channel_listener::name(connection, false);
  if (name.empty() || !may_open_socket(connection)) return {};
  support::owned_descriptor bell(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto [address, size] = address_of(name);
  if (!bell || ::connect(bell.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 || !is_of_this_user(bell.get()))
    return {};
  const auto memory = memory_channel::make_memory();
  auto channel = memory_channel::map(memory, memory_channel::end::opened);
  if (!channel || !give(bell.get(), memory)) return {};
  return {std::move(channel), std::move(bell)};
}

}  // namespace troupe::network
