// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/service_end.hpp>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <list>
#include <system_error>
#include <utility>

#include <troupe/actors/support/owned_descriptor.hpp>

namespace troupe::support {

namespace {

constexpr std::array stop_signals{SIGTERM, SIGINT};

owned_descriptor make_event() {
  auto event = make_bell();
  if (!event) throw std::system_error(errno, std::generic_category(), "can't wait for a signal (eventfd)");
  return event;
}

// The descriptors to which the signal handlers write. told_by_signal stays readable from the first SIGTERM or SIGINT until no
// thread waits any more.
std::atomic<int> told_by_signal{-1};
std::atomic<int> told_by_hangup{-1};

void on_signal(int number) {
  const int before = errno;
  ring(number == SIGHUP ? told_by_hangup : told_by_signal);
  errno = before;
}

/// The signal handlers, which all waiting threads share. While an object of this class lives, its thread does not block SIGTERM
/// and SIGINT: the program may have blocked both on all of its threads.
class signal_handlers {
 public:
  /// `on_hangup` has to outlive the object.
  explicit signal_handlers(const std::function<void()>& on_hangup) {
    std::list<const std::function<void()>*> mine{&on_hangup};
    mine_ = mine.begin();
    {
      const checked_lock lock(mutex_);
      if (waiting_.empty()) install();
      waiting_.splice(waiting_.end(), mine);
    }
    sigset_t stop;
    sigemptyset(&stop);
    for (const int each : stop_signals) sigaddset(&stop, each);
    ::pthread_sigmask(SIG_UNBLOCK, &stop, &mask_);
  }
  ~signal_handlers() {
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    const checked_lock lock(mutex_);
    waiting_.erase(mine_);
    if (waiting_.empty()) remove();
  }
  signal_handlers(const signal_handlers&) = delete;
  signal_handlers& operator=(const signal_handlers&) = delete;

  int event() const noexcept { return told_by_signal; }
  int hangup() const noexcept { return told_by_hangup; }
  /// Runs the `on_hangup` of all waiting threads, unless another thread has done so.
  static void hear_hangup() {
    const checked_lock lock(mutex_);
    if (!quiet(told_by_hangup)) return;
    for (const auto* each : waiting_)
      if (*each) (*each)();
  }

 private:
  static void install() TROUPE_REQUIRES(mutex_) {
    auto event = make_event();
    hangup_event_ = make_event();
    event_ = std::move(event);
    told_by_signal = event_.get();
    told_by_hangup = hangup_event_.get();
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < stop_signals.size(); ++i) ::sigaction(stop_signals[i], &action, &before_[i]);
    ::sigaction(SIGHUP, nullptr, &hangup_before_);
    has_hangup_ = hangup_before_.sa_handler == SIG_DFL || hangup_before_.sa_handler == SIG_IGN;
    if (has_hangup_) ::sigaction(SIGHUP, &action, nullptr);
  }
  static void remove() TROUPE_REQUIRES(mutex_) {
    for (std::size_t i = 0; i < stop_signals.size(); ++i) ::sigaction(stop_signals[i], &before_[i], nullptr);
    if (has_hangup_) ::sigaction(SIGHUP, &hangup_before_, nullptr);
    told_by_signal = -1;
    told_by_hangup = -1;
    event_ = {};
    hangup_event_ = {};
  }

  static inline checked_mutex mutex_;
  static inline std::list<const std::function<void()>*> waiting_ TROUPE_GUARDED_BY(mutex_);
  static inline owned_descriptor event_ TROUPE_GUARDED_BY(mutex_);
  static inline owned_descriptor hangup_event_ TROUPE_GUARDED_BY(mutex_);
  static inline std::array<struct sigaction, stop_signals.size()> before_ TROUPE_GUARDED_BY(mutex_){};
  static inline struct sigaction hangup_before_ TROUPE_GUARDED_BY(mutex_) {};
  static inline bool has_hangup_ TROUPE_GUARDED_BY(mutex_) = false;  // whether SIGHUP has the handler
  std::list<const std::function<void()>*>::iterator mine_;
  sigset_t mask_;
};

}  // namespace

void service_end::ask() noexcept {
  const checked_lock lock(mutex_);
  asked_ = true;
  if (waiter_ >= 0) ring(waiter_);
}

void service_end::wait(const std::function<void()>& on_hangup) {
  const auto asked = make_event();
  const signal_handlers signals(on_hangup);
  {
    const checked_lock lock(mutex_);
    if (asked_) return;
    waiter_ = asked.get();
  }
  std::array<pollfd, 3> watched{{{asked.get(), POLLIN, 0}, {signals.event(), POLLIN, 0}, {signals.hangup(), POLLIN, 0}}};
  do {
    if (watched[2].revents != 0) signal_handlers::hear_hangup();
    while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
    }
  } while (watched[0].revents == 0 && watched[1].revents == 0);
  const checked_lock lock(mutex_);
  waiter_ = -1;
}

}  // namespace troupe::support
