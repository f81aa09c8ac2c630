// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/log_lines.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <troupe/messages/errors.hpp>

namespace troupe::logging {

namespace {

struct character {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

/// The first character of a UTF-8 text. Pre: the text is not empty.
character first_of(std::string_view text) {
  assert(!text.empty());
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    value = (value << 6) | (next & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < least[bytes] || value > 0x10ffff || surrogate) return {};
  return {value, bytes, true};
}

/// Whether a terminal or an editor takes the character as a command and does not show it.
bool is_command(std::uint32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool line_break = c == 0x2028 || c == 0x2029;
  const bool direction =
    c == 0x200e || c == 0x200f || c == 0x061c || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return control || line_break || direction;
}

std::string escaped(std::uint32_t value) {
  if (value == '\n') return "\\n";
  if (value == '\r') return "\\r";
  if (value == '\t') return "\\t";
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), value < 0x100 ? "\\x%02x" : "\\u{%04x}", static_cast<unsigned>(value));
  return text.data();
}

constexpr int how = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

}  // namespace

double line_limit::tokens_at(const bucket& its, std::int64_t now_ns) {
  return std::min(most_at_once, its.tokens + static_cast<double>(now_ns - its.filled_ns) / static_cast<double>(refill_ns));
}

/// Forgets kinds that have all tokens again, because a new kind would have the same tokens.
void line_limit::forget_quiet(std::int64_t now_ns) {
  std::erase_if(kinds_,
                [&](const auto& each) { return each.second.left_out == 0 && tokens_at(each.second, now_ns) >= most_at_once; });
}

line_limit::verdict line_limit::ask(kind what, std::int64_t now_ns) {
  if (what.about != 0 && kinds_.size() >= most_kinds && !kinds_.contains(what)) {
    forget_quiet(now_ns);
    if (kinds_.size() >= most_kinds) what.about = 0;
  }
  auto& its = kinds_.try_emplace(what, bucket{.filled_ns = now_ns}).first->second;
  its.tokens = tokens_at(its, now_ns);
  its.filled_ns = now_ns;
  if (its.tokens < 1) {
    ++its.left_out;
    return {};
  }
  its.tokens -= 1;
  return {true, std::exchange(its.left_out, 0)};
}

std::uint64_t line_limit::held() {
  std::uint64_t all = 0;
  for (auto& [kind, its] : kinds_) all += std::exchange(its.left_out, 0);
  return all;
}

std::string one_line(std::string_view text, std::size_t most) {
  std::string result;
  while (!text.empty()) {
    const auto next = first_of(text);
    const bool shown = next.valid && !is_command(next.value);
    const auto piece = shown ? std::string(text.substr(0, next.bytes))
                             : escaped(next.valid ? next.value : static_cast<unsigned char>(text.front()));
    if (result.size() + piece.size() > most) return result + "... (" + std::to_string(text.size()) + " bytes more)";
    result += piece;
    text.remove_prefix(next.bytes);
  }
  return result;
}

std::string json_string(std::string_view line) {
  std::string result = "\"";
  for (const char each : line) {
    if (each == '"' || each == '\\') result += '\\';
    result += each;
  }
  return result += '"';
}

/// Opens a pipe or terminal again, because O_NONBLOCK on the existing descriptor would apply to all processes that share it. A
/// file is not opened again: a second descriptor has a position of its own, so lines would overwrite those of other processes.
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
    if (kind_ == kind::blocking && !is_writable({}) && !wait_until_writable()) {
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
    if ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_until_writable()) continue;
    is_cut_ = is_cut_ || done > 0;
    return false;
  }
  return true;
}

bool line_descriptor::wait_until_writable() noexcept {
  if (is_stuck_) return false;
  is_stuck_ = !is_writable(patience);
  return !is_stuck_;
}

// poll() reports a pipe as writable only if the pipe has space for 4,096 bytes, so a whole line fits.
bool line_descriptor::is_writable(std::chrono::milliseconds limit) const noexcept {
  pollfd out{to_.get(), POLLOUT, 0};
  return ::poll(&out, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace troupe::logging
