// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::test {

/// While an object of this class lives, stderr of this process is a pipe that the object alone reads.
class stderr_in_pipe {
 public:
  stderr_in_pipe() : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    std::array<int, 2> ends;
    if (!before_ || ::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("can't make a pipe");
    reader_ = support::owned_descriptor(ends[0]);
    const support::owned_descriptor writer(ends[1]);
    ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    ::dup2(writer.get(), STDERR_FILENO);
  }
  ~stderr_in_pipe() { ::dup2(before_.get(), STDERR_FILENO); }
  stderr_in_pipe(const stderr_in_pipe&) = delete;
  stderr_in_pipe& operator=(const stderr_in_pipe&) = delete;

  /// Writes to the pipe until the pipe is full.
  void fill() {
    const int before = ::fcntl(STDERR_FILENO, F_GETFL);
    ::fcntl(STDERR_FILENO, F_SETFL, before | O_NONBLOCK);
    for (std::size_t size : {4096, 1})
      while (::write(STDERR_FILENO, std::string(size, '.').data(), size) > 0) {
      }
    ::fcntl(STDERR_FILENO, F_SETFL, before);
  }

  /// Closes the reading end of the pipe for good.
  void close_reader() { reader_ = {}; }

  /// The text that came since the last read().
  std::string read() {
    std::string result;
    std::array<char, 65536> bytes;
    for (ssize_t came = 0; (came = ::read(reader_.get(), bytes.data(), bytes.size())) > 0;)
      result.append(bytes.data(), static_cast<std::size_t>(came));
    return result;
  }

 private:
  support::owned_descriptor before_;
  support::owned_descriptor reader_;
};

}  // namespace troupe::test
