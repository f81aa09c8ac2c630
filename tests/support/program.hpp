// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/actors/support/owned_descriptor.hpp>

#include "apps/process_group.hpp"

namespace troupe::apps::test {

/// The file of the program under test.
inline std::string program_under_test() {
  const char* file = std::getenv("TROUPE_PROGRAM");
  if (file == nullptr) throw std::runtime_error("set TROUPE_PROGRAM to the program troupe; ctest does");
  return file;
}

/// A run of the program under test, or of another program. The output of the run is gathered line by line.
class program {
 public:
  explicit program(std::vector<std::string> arguments, const std::string& file = program_under_test()) {
    arguments.insert(arguments.begin(), file);
    pid_ = processes_.start("program", std::move(arguments));
  }

  pid_t pid() const noexcept { return pid_; }
  void signal(int number) { kill(pid_, number); }

  /// Waits for the first line that is wanted. Empty if no such line comes.
  std::string line_that(const std::function<bool(const std::string&)>& is_wanted) {
    std::unique_lock lock(mutex_);
    auto found = lines_.end();
    came_.wait_for(lock, std::chrono::seconds(30), [&] {
      found = std::find_if(lines_.begin(), lines_.end(), is_wanted);
      return found != lines_.end();
    });
    return found == lines_.end() ? "" : *found;
  }
  std::string line_with(const std::string& text) {
    return line_that([&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  /// Waits until so many lines have the text. False if they do not come.
  bool has_lines_with(const std::string& text, std::ptrdiff_t count) {
    const auto has = [&](const std::string& line) { return line.find(text) != std::string::npos; };
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, std::chrono::seconds(30),
                          [&] { return std::count_if(lines_.begin(), lines_.end(), has) >= count; });
  }

  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }
  std::string text() {
    std::string all;
    for (auto& line : lines()) all += line + "\n";
    return all;
  }

  /// Waits for the end of the program, and says how it ended; "still runs" if it does not end within `patience`.
  std::string how_it_ends(std::chrono::milliseconds patience = std::chrono::seconds(30)) {
    auto end = processes_.poll_for(patience);
    return end ? end->how : "still runs";
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::string> lines_;
  pid_t pid_ = 0;
  process_group processes_{[this](const std::string&, const std::string& line) {
    {
      std::lock_guard lock(mutex_);
      lines_.push_back(line);
    }
    came_.notify_all();
  }};
};

/// Waits until a process that is no child of ours has ended.
inline bool is_gone(pid_t pid) {
  const support::owned_descriptor life(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!life) return errno == ESRCH;
  pollfd watched{life.get(), POLLIN, 0};
  return ::poll(&watched, 1, 20'000) > 0;
}

}  // namespace troupe::apps::test
