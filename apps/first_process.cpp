// SPDX-License-Identifier: BSD-3-Clause
#include "apps/first_process.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace troupe::apps {

namespace {

[[noreturn]] void serve(pid_t child, const sigset_t& signals) {
  while (true) {
    const int number = sigwaitinfo(&signals, nullptr);
    if (number > 0 && number != SIGCHLD) kill(child, number);
    int status = 0;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == child) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
}

}  // namespace

void leave_first_process() {
  if (getpid() != 1) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct sigaction usual {};
  sigaction(SIGCHLD, &usual, nullptr);  // where the signal is ignored, the kernel tells of no child
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot start a process beside process 1");
  if (child > 0) serve(child, all);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace troupe::apps
