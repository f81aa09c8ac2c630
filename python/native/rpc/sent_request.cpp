// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/sent_request.hpp"

#include <unistd.h>

#include <troupe/actors/support/spin_pause.hpp>
#include <troupe/actors/support/steady_clock.hpp>

#include "rpc/python_thread.hpp"

namespace torchtroupe {

namespace {

thread_local std::shared_ptr<sent_request> last;

}  // namespace

const std::shared_ptr<sending_thread>& sending_thread::here() {
  static thread_local std::pair<std::shared_ptr<sending_thread>, pid_t> of_thread;
  // The child of a fork has none of the parent's requests.
  if (const auto process = ::getpid(); of_thread.second != process) of_thread = {std::make_shared<sending_thread>(), process};
  return of_thread.first;
}

bool sending_thread::wait(const std::function<bool()>& done, std::mutex& mutex, std::condition_variable& told,
                          const sent_request* own, std::chrono::duration<double> patience) {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + std::chrono::duration_cast<clock::duration>(patience);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!run_ends(lock) || done() || clock::now() >= until) return done();
    waits_ = {&mutex, &told, own};
    lock.unlock();
    const auto wakes = [&] { return has_ends_ || done(); };
    // Waking a thread that sleeps takes longer than a small function.
    const auto awake = clock::now() + awake_for;
    while (!wakes() && clock::now() < awake) troupe::detail::spin_pause();
    {
      std::unique_lock sleeps(mutex);
      told.wait_until(sleeps, until, wakes);
    }
    lock.lock();
    waits_ = {};
  }
}

/// Runs the ends that the thread has taken. False: a handler of a signal has raised an exception, and the ends run elsewhere.
bool sending_thread::run_ends(std::unique_lock<std::mutex>& lock) {
  const bool hears_signals = !ends_.empty() && ::getpid() == ::gettid();
  bool goes_on = true;
  if (hears_signals) {
    lock.unlock();
    goes_on = python_thread::handle_signals();  // before an end: that would lose the exception
    lock.lock();
  }
  while (!ends_.empty()) {
    auto end = std::move(ends_.front());
    ends_.pop_front();
    runs_plain_ends_ = !end.is_own;
    lock.unlock();
    if (goes_on && (end.is_own || !has_callbacks_)) {
      const auto before = last;  // the end may send
      end.run();
      last = before;
    } else {
      end.other->elsewhere(std::move(end.run));
    }
    end.run = nullptr;
    lock.lock();
  }
  runs_plain_ends_ = has_ends_ = false;
  return goes_on;
}

/// Whether the thread sends requests, of which `before` is not the last.
bool sending_thread::is_sending(const sent_request& before) const {
  return last_ != &before && troupe::support::steady_ns() - last_sent_ns_ < sent_request::between_requests().count();
}

/// When the result is dropped, the ends that are left run elsewhere, unless the thread runs them.
std::shared_ptr<void> sending_thread::runs_what_is_left() {
  return {nullptr, [self = shared_from_this()](void*) {
            std::deque<taken_end> left;
            {
              const std::lock_guard lock(self->mutex_);
              self->is_looked_after_ = false;
              if (!self->runs_plain_ends_ && self->waits_.mutex == nullptr) left.swap(self->ends_);
            }
            for (auto& each : left) each.other->elsewhere(std::move(each.run));
          }};
}

std::chrono::nanoseconds& sent_request::between_requests() {
  static std::chrono::nanoseconds all = std::chrono::microseconds(300);
  return all;
}

bool& sent_request::is_awaited_at_once() {
  static thread_local bool of_thread = false;
  return of_thread;
}

std::shared_ptr<sent_request> sent_request::of_this_thread() {
  const auto& thread = sending_thread::here();
  last = std::make_shared<sent_request>(thread);
  thread->last_ = last.get();
  thread->last_sent_ns_ = troupe::support::steady_ns();
  return last;
}

void sent_request::run(sending_thread::work end, bool is_plain, const sending_thread::other_way& other) {
  auto& by = *by_;
  std::shared_ptr<void> look;
  {
    const std::lock_guard lock(by.mutex_);
    const auto waits = by.waits_;
    const bool is_own = waits.own == this;
    const bool is_kept = waits.mutex == nullptr && !by.runs_plain_ends_;
    const bool takes = is_own || (is_plain && !sending_thread::has_callbacks_ && (!is_kept || by.is_sending(*this)));
    if (takes) by.ends_.push_back({std::exchange(end, nullptr), is_own, &other});
    if (takes && is_kept && !std::exchange(by.is_looked_after_, true)) look = by.runs_what_is_left();
    is_answered_ = true;
    if (takes && waits.mutex != nullptr) {
      const std::lock_guard sleeps(*waits.mutex);
      by.has_ends_ = true;
      waits.told->notify_all();
    }
  }
  if (look.use_count() > 0) other.drops_later(std::move(look));
  if (end) other.elsewhere(std::move(end));
}

bool sent_request::wait(std::chrono::duration<double> patience) {
  const auto own = last;
  if (own && !own->by_->wait([&] { return own->is_answered_.load(); }, own->mutex_, own->answered_, own.get(), patience))
    return false;
  if (last == own) last = nullptr;
  return true;
}

}  // namespace torchtroupe
