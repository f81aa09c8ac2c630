// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/sent_request.hpp"

#include <troupe/actors/future.hpp>
#include <troupe/actors/support/steady_clock.hpp>

namespace torchtroupe {

namespace {

constexpr std::chrono::nanoseconds between_requests = std::chrono::microseconds(300);  // of a thread that sends many

thread_local std::shared_ptr<sent_request> last;

}  // namespace

const std::shared_ptr<sending_thread>& sending_thread::here() {
  static thread_local const auto of_thread = std::make_shared<sending_thread>();
  return of_thread;
}

bool sending_thread::wait(const std::function<bool()>& done, std::mutex& mutex, std::condition_variable& told,
                          const sent_request* own, std::chrono::duration<double> patience) {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + std::chrono::duration_cast<clock::duration>(patience);
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!ends_.empty()) {
      runs_ends_ = true;  // an end may itself have waited
      auto end = std::move(ends_.front());
      ends_.pop_front();
      lock.unlock();
      if (end.of == own || !has_callbacks_)
        end.run();
      else
        end.other->elsewhere(std::move(end.run));
      end.run = nullptr;
      lock.lock();
    }
    runs_ends_ = has_ends_ = false;
    if (done() || clock::now() >= until) return done();
    waits_ = {&mutex, &told, own};
    lock.unlock();
    const auto wakes = [&] { return has_ends_ || done(); };
    // Waking a thread that sleeps takes longer than a small function.
    const auto awake = clock::now() + troupe::detail::awake_for;
    while (!wakes() && clock::now() < awake) troupe::detail::spin_pause();
    {
      std::unique_lock sleeps(mutex);
      told.wait_until(sleeps, until, wakes);
    }
    lock.lock();
    waits_ = {};
  }
}

/// Whether the thread sends requests, of which `before` is not the last.
bool sending_thread::is_sending(const sent_request& before) const {
  return last_ != &before && troupe::support::steady_ns() - last_sent_ns_ < between_requests.count();
}

/// When the result is dropped, the ends that are left run elsewhere, unless the thread waits.
std::shared_ptr<void> sending_thread::runs_what_is_left() {
  return {nullptr, [self = shared_from_this()](void*) {
            std::deque<kept_end> left;
            {
              const std::lock_guard lock(self->mutex_);
              self->is_looked_after_ = false;
              if (!self->runs_ends_ && self->waits_.mutex == nullptr) left.swap(self->ends_);
            }
            for (auto& each : left) each.other->elsewhere(std::move(each.run));
          }};
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

void sent_request::run(sending_thread::work end, const sending_thread::other_way& other) {
  auto& by = *by_;
  std::shared_ptr<void> look;
  {
    const std::lock_guard lock(by.mutex_);
    const auto waits = by.waits_;
    const bool is_own = waits.own == this;
    const bool is_kept = waits.mutex == nullptr && !by.runs_ends_ && by.is_sending(*this);
    const bool takes = is_own || (!sending_thread::has_callbacks_ && (waits.mutex != nullptr || by.runs_ends_ || is_kept));
    if (takes) by.ends_.push_back({std::exchange(end, nullptr), this, &other});
    if (takes && is_kept && !std::exchange(by.is_looked_after_, true)) look = by.runs_what_is_left();
    is_answered_ = true;
    if (takes && waits.mutex != nullptr) {
      const std::lock_guard sleeps(*waits.mutex);
      by.has_ends_ = true;
      waits.told->notify_all();
    }
  }
  if (look.use_count() > 0) other.keep_for_a_while(std::move(look));
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
