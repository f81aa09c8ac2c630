// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace troupe::support {

/// A file descriptor with an owner. `x = {}` closes the descriptor of `x`.
class owned_descriptor {
 public:
  owned_descriptor() = default;
  explicit owned_descriptor(int number) noexcept : number_(number) {}
  owned_descriptor(owned_descriptor&& other) noexcept : number_(other.release()) {}
  owned_descriptor& operator=(owned_descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~owned_descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int get() const noexcept { return number_; }
  int release() noexcept { return std::exchange(number_, -1); }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

struct pipe_ends {
  owned_descriptor read;
  owned_descriptor write;
};

/// A pipe that programs started with exec do not inherit. If the system gives no pipe, both ends are empty and errno says why.
inline pipe_ends make_pipe() noexcept {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  return {owned_descriptor(ends[0]), owned_descriptor(ends[1])};
}

/// A descriptor that is readable from ring() on until quiet(). If the system gives none, the result is empty and errno says
/// why.
inline owned_descriptor make_bell() noexcept { return owned_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
/// Makes the bell readable. The handler of a signal may call ring() too.
inline void ring(int bell) noexcept {
  const std::uint64_t once = 1;
  static_cast<void>(!::write(bell, &once, sizeof once));  // fails only if the bell rings already
}
/// Ends the ringing of the bell. Returns whether the bell was ringing.
inline bool quiet(int bell) noexcept {
  std::uint64_t rings = 0;
  return ::read(bell, &rings, sizeof rings) > 0;
}

}  // namespace troupe::support
