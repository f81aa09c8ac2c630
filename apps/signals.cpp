// SPDX-License-Identifier: BSD-3-Clause
#include "signals.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace troupe::apps {

namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

bool ignores_hangup() {
  struct sigaction action {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

[[noreturn]] void serve(pid_t child, const sigset_t& signals) {
  while (true) {
    const int number = sigwaitinfo(&signals, nullptr);
    if (number > 0 && number != SIGCHLD) kill(child, number);
    int status = 0;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == child) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
}

constexpr std::chrono::milliseconds glance{20};  // interval between two checks

}  // namespace

void block_stop_signals() {
  auto set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // so write() fails at the size limit of files, and the error names the file
}

stop_signal::stop_signal(std::function<void(int)> on_signal, std::chrono::milliseconds patience,
                         std::function<void()> on_hangup)
    : on_signal_(std::move(on_signal)), on_hangup_(std::move(on_hangup)), patience_(patience) {
  auto set = stop_signals();
  if (!on_hangup_ && ignores_hangup()) sigdelset(&set, SIGHUP);
  signal_file_ = support::owned_descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  leave_file_ = support::make_bell();
  if (!signal_file_ || !leave_file_) throw std::system_error(errno, std::generic_category(), "cannot wait for signals");
  thread_ = std::thread([this] { listen(); });
}

stop_signal::~stop_signal() {
  support::ring(leave_file_.get());
  thread_.join();
}

int stop_signal::wait() const {
  checked_unique_lock lock(mutex_);
  came_.wait(lock, [&] { return requested(); });
  return number();
}

std::optional<int> stop_signal::wait_for(std::chrono::milliseconds timeout) const {
  checked_unique_lock lock(mutex_);
  if (!came_.wait_for(lock, timeout, [&] { return requested(); })) return std::nullopt;
  return number();
}

void stop_signal::request() { note(SIGTERM); }

void stop_signal::listen() {
  pollfd watched[] = {{signal_file_.get(), POLLIN, 0}, {leave_file_.get(), POLLIN, 0}};
  std::optional<std::chrono::steady_clock::time_point> first;
  while (true) {
    ::poll(watched, 2, -1);
    if (watched[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signal_file_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    if (on_hangup_ && info.ssi_signo == SIGHUP) {
      on_hangup_();
      continue;
    }
    auto now = std::chrono::steady_clock::now();
    if (first && now - *first >= patience_) _exit(128 + static_cast<int>(info.ssi_signo));
    if (!first) first = now;
    note(static_cast<int>(info.ssi_signo));
  }
}

void stop_signal::note(int number) {
  {
    checked_lock lock(mutex_);
    if (requested()) return;
    number_.store(number, std::memory_order_release);
  }
  came_.notify_all();
  if (on_signal_) on_signal_(number);
}

void leave_first_process() {
  if (getpid() != 1) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct sigaction usual {};
  sigaction(SIGCHLD, &usual, nullptr);  // if SIGCHLD is ignored, the kernel does not tell when a child ends
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot start a process beside process 1");
  if (child > 0) serve(child, all);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

last_exit::last_exit(const stop_signal& stop, std::chrono::milliseconds patience, std::function<void()> leave)
    : patience_(patience) {
  thread_ = std::jthread([this, &stop, leave = std::move(leave)](const std::stop_token& disarmed) {
    while (!stop.wait_for(glance))
      if (disarmed.stop_requested()) return;
    for (const auto asked = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - asked < patience_.load();) {
      if (disarmed.stop_requested()) return;
      std::this_thread::sleep_for(glance);
    }
    if (disarmed.stop_requested()) return;
    leave();
    _exit(128 + stop.number());
  });
}

void last_exit::disarm() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace troupe::apps
