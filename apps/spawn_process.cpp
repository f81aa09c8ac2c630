// SPDX-License-Identifier: BSD-3-Clause
#include "spawn_process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::apps {

namespace {

/// What the child does between fork and exec. Another thread of the parent may have held any lock at the fork. So the child
/// calls only functions that are safe in a signal handler.
class newborn {
 public:
  newborn(char* const* arguments, int output, int errors, int input, int report)
      : arguments_(arguments), output_(output), errors_(errors), input_(input), report_(report) {}

  [[noreturn]] void run(pid_t parent) const noexcept {
    check(prctl(PR_SET_PDEATHSIG, SIGKILL));
    if (getppid() != parent)  // the parent died before the line above
      _exit(127);
    check(setpgid(0, 0));
    redirect();
    // Makes exec close all descriptors from 3 on, also that of the pipe for reports.
    if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) < 0) close_each_at_start();
    for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    execvp(arguments_[0], arguments_);
    check(-1);
    _exit(127);
  }

 private:
  /// Does the same as close_range with CLOSE_RANGE_CLOEXEC, which Linux has since 5.11. It finds the open files in /proc.
  void close_each_at_start() const noexcept {
    const int list = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(list);
    alignas(dirent64) char buffer[4096];
    long got = 0;
    while ((got = syscall(SYS_getdents64, list, buffer, sizeof buffer)) > 0)
      for (long at = 0; at < got;) {
        const auto* each = reinterpret_cast<const dirent64*>(buffer + at);
        int number = 0;
        for (const char* digit = each->d_name; *digit >= '0' && *digit <= '9'; ++digit) number = number * 10 + (*digit - '0');
        if (number > STDERR_FILENO) fcntl(number, F_SETFD, FD_CLOEXEC);
        at += each->d_reclen;
      }
    check(static_cast<int>(got));
  }

  void redirect() const noexcept {
    int input = input_ >= 0 ? input_ : open("/dev/null", O_RDONLY);
    check(input);
    check(dup2(input, STDIN_FILENO));
    if (output_ >= 0) check(dup2(output_, STDOUT_FILENO));
    if (errors_ >= 0) check(dup2(errors_, STDERR_FILENO));
  }

  void check(int result) const noexcept {
    if (result >= 0) return;
    int reason = errno;
    [[maybe_unused]] auto written = write(report_, &reason, sizeof reason);
    _exit(127);
  }

  char* const* arguments_;
  int output_;
  int errors_;
  int input_;
  int report_;
};

pid_t fork_without_signals(const newborn& child) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t parent = getpid();
  pid_t pid = _Fork();  // runs no fork handlers: those of libraries wait for locks that the child does not need
  if (pid == 0) child.run(parent);
  int reason = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = reason;
  return pid;
}

}  // namespace

pid_t spawn_process(const std::vector<std::string>& arguments, int output, int errors, int input) {
  if (arguments.empty()) throw std::invalid_argument("cannot start a process: expected a program and its arguments, got none");
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);

  auto report = support::make_pipe();
  if (!report.read) throw std::system_error(errno, std::generic_category(), "cannot start '" + arguments[0] + "'");
  pid_t pid = fork_without_signals(newborn(pointers.data(), output, errors, input, report.write.get()));
  int reason = pid < 0 ? errno : 0;
  report.write = {};
  if (pid > 0) {
    ssize_t got;
    while ((got = read(report.read.get(), &reason, sizeof reason)) < 0 && errno == EINTR) {
    }
    if (got != static_cast<ssize_t>(sizeof reason))
      reason = 0;  // exec has closed the pipe: the program runs
    else
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
  }
  if (reason != 0) throw std::system_error(reason, std::generic_category(), "cannot start '" + arguments[0] + "'");
  return pid;
}

}  // namespace troupe::apps
