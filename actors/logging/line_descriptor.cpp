// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/line_descriptor.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <troupe/messages/errors.hpp>

namespace troupe::logging {

namespace {

constexpr int how = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

}  // namespace

/// Opens a pipe or terminal again: O_NONBLOCK on the existing descriptor would hold for all processes that share it. A file is
/// not opened again: with a second position in the file, lines would overwrite what other processes write.
line_descriptor line_descriptor::standard_error(const char* opened_by) {
  struct stat about {};
  if (::fstat(STDERR_FILENO, &about) != 0) return {support::owned_descriptor(), kind::non_blocking};
  const bool has_reader = S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode);
  if (has_reader)
    if (support::owned_descriptor to(::open(opened_by, how)); to) return {std::move(to), kind::non_blocking};
  support::owned_descriptor to(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  return {std::move(to), has_reader ? kind::blocking : S_ISSOCK(about.st_mode) ? kind::socket : kind::non_blocking};
}

line_descriptor line_descriptor::append_to(const std::string& path) {
  support::owned_descriptor to(::open(path.c_str(), how | O_CREAT, 0644));
  if (!to) {
    const auto reason = std::generic_category().message(errno);
    throw error(errc::misuse, "the log file '" + path + "' can't be written: " + reason +
                                "; name a file in a folder that is there and that this user may write to");
  }
  return {std::move(to), kind::non_blocking};
}

bool line_descriptor::write(std::string_view line) noexcept {
  if (is_cut_ && write_all("\n")) is_cut_ = false;
  const bool written = !is_cut_ && write_all(line);
  lost_ = written ? 0 : lost_ + 1;
  return written;
}

bool line_descriptor::write_all(std::string_view text) noexcept {
  for (std::size_t done = 0; done < text.size();) {
    const auto rest = text.substr(done);
    if (kind_ == kind::blocking && !has_room({}) && !wait_for_room()) {
      is_cut_ = is_cut_ || done > 0;
      return false;
    }
    const auto went = kind_ == kind::socket ? ::send(to_.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                            : ::write(to_.get(), rest.data(), rest.size());
    if (went >= 0) {
      done += static_cast<std::size_t>(went);
      is_stuck_ = false;
      continue;
    }
    if (errno == EINTR) continue;
    if ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_for_room()) continue;
    is_cut_ = is_cut_ || done > 0;
    return false;
  }
  return true;
}

bool line_descriptor::wait_for_room() noexcept {
  if (is_stuck_) return false;
  is_stuck_ = !has_room(patience);
  return !is_stuck_;
}

// poll() reports room in a pipe only if the pipe has room for 4,096 bytes, so a whole line fits.
bool line_descriptor::has_room(std::chrono::milliseconds limit) const noexcept {
  pollfd room{to_.get(), POLLOUT, 0};
  return ::poll(&room, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace troupe::logging
