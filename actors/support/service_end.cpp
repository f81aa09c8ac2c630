// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/service_end.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::support {

namespace {

constexpr std::array stop_signals{SIGTERM, SIGINT};

owned_descriptor make_event() {
  owned_descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw std::system_error(errno, std::generic_category(), "can't wait for a signal (eventfd)");
  return event;
}

void tell(int event) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event, &one, sizeof one);
}

// The descriptor of the handlers. It stays readable from the first signal until no thread waits any more.
std::atomic<int> told_by_signal{-1};

void on_signal(int) {
  const int before = errno;
  tell(told_by_signal);
  errno = before;
}

/// The handlers of the signals, which all threads share that wait. The thread that makes one lets the signals through: a program may
/// have blocked them in all of its threads.
class signal_handlers {
 public:
  signal_handlers() {
    {
      const std::lock_guard lock(mutex_);
      if (users_ == 0) install();
      ++users_;
    }
    sigset_t mine;
    sigemptyset(&mine);
    for (const int each : stop_signals) sigaddset(&mine, each);
    ::pthread_sigmask(SIG_UNBLOCK, &mine, &mask_);
  }
  ~signal_handlers() {
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) remove();
  }
  signal_handlers(const signal_handlers&) = delete;
  signal_handlers& operator=(const signal_handlers&) = delete;

  int event() const noexcept { return told_by_signal; }

 private:
  static void install() {
    event_ = make_event();
    told_by_signal = event_.get();
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < stop_signals.size(); ++i) ::sigaction(stop_signals[i], &action, &before_[i]);
  }
  static void remove() {
    for (std::size_t i = 0; i < stop_signals.size(); ++i) ::sigaction(stop_signals[i], &before_[i], nullptr);
    told_by_signal = -1;
    event_ = {};
  }

  static inline std::mutex mutex_;  // guards the next three
  static inline int users_ = 0;
  static inline owned_descriptor event_;
  static inline std::array<struct sigaction, stop_signals.size()> before_{};
  sigset_t mask_;
};

}  // namespace

void service_end::ask() noexcept {
  const std::lock_guard lock(mutex_);
  asked_ = true;
  if (waiter_ >= 0) tell(waiter_);
}

void service_end::wait() {
  const auto asked = make_event();
  const signal_handlers signals;
  {
    const std::lock_guard lock(mutex_);
    if (asked_) return;
    waiter_ = asked.get();
  }
  std::array<pollfd, 2> watched{{{asked.get(), POLLIN, 0}, {signals.event(), POLLIN, 0}}};
  while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
  }
  const std::lock_guard lock(mutex_);
  waiter_ = -1;
}

}  // namespace troupe::support
