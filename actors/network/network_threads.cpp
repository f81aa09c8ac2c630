// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/network_threads.hpp>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <system_error>

#include <troupe/actors/future.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/spin_pause.hpp>

namespace troupe::network {

namespace {

using clock = std::chrono::steady_clock;

thread_local const network_threads* leads = nullptr;
thread_local const network_threads* serves = nullptr;

void without_exceptions(const std::function<void()>& work) noexcept {
  try {
    work();
  } catch (const std::exception& problem) {
    detail::report_lost_exception("a job of the network thread", problem.what());
  } catch (...) {
    detail::report_lost_exception("a job of the network thread", "an exception of unknown type");
  }
}

int opened(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

void add_to(int polled, int descriptor, void* whose) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = whose;
  opened(::epoll_ctl(polled, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
}

}  // namespace

/// While a job waits for a future, the other thread has to lead: that thread may bring the future's result.
class network_threads::job_scope final : public blocking_observer {
 public:
  explicit job_scope(network_threads& of) : of_(of) { current() = this; }
  ~job_scope() override { current() = nullptr; }
  void blocked() override { of_.wake_other(); }
  void resumed() override {}

 private:
  network_threads& of_;
};

std::shared_ptr<network_threads> network_threads::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<network_threads> known;
  std::lock_guard lock(mutex);
  auto result = known.lock();
  if (!result || result->process_ != ::getpid()) known = result = std::make_shared<network_threads>();
  return result;
}

network_threads::network_threads()
    : process_(::getpid()),
      polled_(opened(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      bell_(opened(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  add_to(polled_.get(), bell_.get(), nullptr);
  try {
    start();
  } catch (...) {
    end();
    throw;
  }
}

network_threads::~network_threads() { end(); }

void network_threads::start() {
  for (int i = 0; i < 2; ++i) {
    threads_.emplace_back([this] { lead_or_follow(); });
    ::pthread_setname_np(threads_.back().native_handle(), "troupe.network");
  }
}

void network_threads::end() {
  {
    std::lock_guard lock(turn_mutex_);
    over_ = true;
    told_.notify_all();
  }
  wake_sleeper();
  for (auto& thread : threads_) thread.join();
}

std::future<void> network_threads::serve(event_loop& loop) {
  auto gone = loop.gone_.get_future();
  {
    std::lock_guard lock(notes_mutex_);
    loops_.push_back(&loop);
  }
  // Idle work that was asked for before is due: the thread that looked for it did not know the loop.
  if (loop.idle_work_due_) idle_work_due_ = true;
  add_to(polled_.get(), loop.poll_handle(), &loop);
  note(loop);  // there may be posts from before serve()
  return gone;
}

bool network_threads::lead_here() const noexcept { return leads == this; }

void network_threads::note(event_loop& loop) {
  if (lead_here()) {
    own_noted_.push_back(&loop);
    return;
  }
  bool wake = false;
  {
    std::lock_guard lock(notes_mutex_);
    noted_.push_back(&loop);
    wake = std::exchange(asleep_, false);
  }
  if (wake)
    wake_sleeper();
  else if (!led_ && serves != this)
    wake_other();
}

void network_threads::note_later(event_loop& loop) { later_.push_back(&loop); }

bool network_threads::run_soon(event_loop& of, job work) {
  if (!lead_here()) return false;
  {
    std::lock_guard lock(turn_mutex_);
    if (job_runs_ || !of.takes_jobs_) return false;
    ++of.jobs_;
  }
  new_jobs_.push_back({&of, std::move(work)});
  return true;
}

void network_threads::finish_jobs(event_loop& of) {
  std::unique_lock lock(turn_mutex_);
  of.takes_jobs_ = false;
  job_ended_.wait(lock, [&] { return of.jobs_ == 0; });
}

void network_threads::ask_for_idle_work(event_loop& of) {
  of.idle_work_due_.store(true, std::memory_order_relaxed);
  if (idle_work_due_.exchange(true, std::memory_order_acq_rel)) return;
  bool wake = false;
  {
    std::lock_guard lock(notes_mutex_);
    wake = std::exchange(asleep_, false);
  }
  if (wake) wake_sleeper();
}

/// Makes the thread that stands by the leader, if there is no leader.
void network_threads::wake_other() {
  std::lock_guard lock(turn_mutex_);
  if (leadership_ == leadership::held) return;
  leadership_ = leadership::called;
  told_.notify_all();
}

void network_threads::wake_sleeper() noexcept {
  const std::uint64_t once = 1;
  [[maybe_unused]] const auto written = ::write(bell_.get(), &once, sizeof once);
}

void network_threads::lead_or_follow() {
  serves = this;
  for (bool may_lead = true; !over_;)
    if (may_lead && try_to_lead())
      run_jobs(lead());
    else
      may_lead = stand_by();
  serves = nullptr;
}

bool network_threads::try_to_lead() noexcept {
  if (led_.exchange(true, std::memory_order_acquire)) return false;
  leads = this;
  times_led_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void network_threads::release() noexcept {
  support::let_go_of_logger();
  leads = nullptr;
  led_.store(false, std::memory_order_release);
}

/// Leads until there is a job for this thread to run. Returns the job.
std::optional<network_threads::queued_job> network_threads::lead() {
  {
    std::lock_guard lock(turn_mutex_);
    leadership_ = leadership::held;
  }
  send_stuck_jobs();
  while (!over_ && new_jobs_.empty()) step();
  handle_posts();  // no other thread was woken for the posts of this thread
  std::optional<queued_job> first;
  {
    std::lock_guard lock(turn_mutex_);
    leadership_ = leadership::vacant;
    if (!new_jobs_.empty()) {
      job_runs_ = job_ran_ = true;
      first = std::move(new_jobs_.front());
      new_jobs_.pop_front();
    }
    jobs_.swap(new_jobs_);
    if (over_ || !one_looks_) told_.notify_all();
  }
  const bool goes_on = !own_noted_.empty() || !later_.empty();
  release();
  if (goes_on || any_noted()) wake_other();
  return first;
}

/// Waits for a turn to lead. True if there seems to be no leader.
bool network_threads::stand_by() {
  std::unique_lock lock(turn_mutex_);
  if (over_) return false;
  if (one_looks_ || (leadership_ == leadership::held && !std::exchange(job_ran_, false))) {
    told_.wait(lock);
    return leadership_ == leadership::called;
  }
  const auto seen = times_led_.load(std::memory_order_relaxed);
  one_looks_ = true;
  told_.wait_for(lock, tick, [&] { return leadership_ == leadership::called || over_; });
  one_looks_ = false;
  return leadership_ == leadership::called || times_led_.load(std::memory_order_relaxed) == seen;
}

/// Runs `next` and the jobs that wait behind it.
void network_threads::run_jobs(std::optional<queued_job> next) {
  const job_scope other_leads_meanwhile(*this);
  while (next) {
    without_exceptions(next->work.run);
    next->work = {};  // before finish_jobs() may return: the node that the job uses may end after that
    support::let_go_of_logger();
    std::lock_guard lock(turn_mutex_);
    if (--next->of->jobs_ == 0) job_ended_.notify_all();
    next.reset();
    if (jobs_.empty()) {
      job_runs_ = false;
    } else {
      next = std::move(jobs_.front());
      jobs_.pop_front();
    }
  }
}

/// Sends elsewhere the jobs that wait behind a long job.
void network_threads::send_stuck_jobs() {
  std::deque<queued_job> stuck;
  {
    std::lock_guard lock(turn_mutex_);
    if (jobs_.empty()) return;
    stuck.swap(jobs_);
  }
  for (auto& each : stuck) {
    without_exceptions(each.work.send_elsewhere);
    each.work = {};
    std::lock_guard lock(turn_mutex_);
    if (--each.of->jobs_ == 0) job_ended_.notify_all();
  }
}

/// Handles the posts and events that are there now. If there are none: does idle work, polls again or sleeps.
void network_threads::step() {
  bool any = handle_posts();
  if (look_at_watched()) {
    any = true;
    ++unpolled_;
  } else {
    unpolled_ = 0;
  }
  if (unpolled_ % (most_unpolled + 1) == 0) {
    any = handle_events(false) || any;
    any = go_on() || any;
  }
  if (any || !later_.empty()) {
    note_event();
    if (last_event_ - last_idle_ < longest_busy) return;
  }
  last_idle_ = last_event_;
  if (do_idle_work() || any) return;
  if (close_events_ >= enough_close_events && clock::now() - last_event_ < awake_for) {
    detail::spin_pause();
  } else {
    sleep();
    note_event();
    last_idle_ = last_event_;
  }
}

/// Counts events that come soon after the event before them. A pause halves the count, a long pause sets the count to zero.
void network_threads::note_event() {
  const auto since = clock::now() - last_event_;
  close_events_ = since < awake_for ? close_events_ + 1 : since < 4 * awake_for ? close_events_ / 2 : 0;
  last_event_ += since;
}

bool network_threads::any_noted() {
  std::lock_guard lock(notes_mutex_);
  return !noted_.empty();
}

/// Handles posts, and posts that those caused, for `most_rounds` rounds at most. Then the sockets have their turn.
bool network_threads::handle_posts() {
  bool any = false;
  for (int round = 0; round < most_rounds; ++round) {
    {
      std::lock_guard lock(notes_mutex_);
      due_.swap(noted_);
    }
    due_.insert(due_.end(), own_noted_.begin(), own_noted_.end());
    own_noted_.clear();
    if (due_.empty()) break;
    for (std::size_t i = 0; i < due_.size(); ++i)
      if (auto* loop = due_[i]) {  // null: the loop has left
        any = loop->handle_posts() || any;
        if (loop->ended()) let_go(*loop);
      }
    due_.clear();
  }
  return any;
}

bool network_threads::handle_events(bool wait) {
  std::array<epoll_event, 32> events;
  const int count = ::epoll_wait(polled_.get(), events.data(), static_cast<int>(events.size()), wait ? -1 : 0);
  for (int i = 0; i < count; ++i)
    if (auto* loop = static_cast<event_loop*>(events[static_cast<std::size_t>(i)].data.ptr)) {
      loop->handle_events();
      if (loop->ended()) let_go(*loop);
    } else {
      std::uint64_t rings = 0;
      [[maybe_unused]] const auto got = ::read(bell_.get(), &rings, sizeof rings);
    }
  return count > 0;
}

/// Lets the loops go on that had more to do than was their turn.
bool network_threads::go_on() {
  if (later_.empty()) return false;
  going_on_.swap(later_);
  for (std::size_t i = 0; i < going_on_.size(); ++i)
    if (auto* loop = going_on_[i]) {  // null: the loop has left
      loop->go_on();
      if (loop->ended()) let_go(*loop);
    }
  going_on_.clear();
  return true;
}

bool network_threads::look_at_watched() {
  std::vector<event_loop*> ended;
  const bool any = watched_.look(ended);
  for (auto* loop : ended) let_go(*loop);
  return any;
}

bool network_threads::do_idle_work() {
  if (!idle_work_due_.load(std::memory_order_relaxed) || !idle_work_due_.exchange(false, std::memory_order_acq_rel))
    return false;
  std::vector<event_loop*> all;
  {
    std::lock_guard lock(notes_mutex_);
    all = loops_;
  }
  for (auto* loop : all)
    if (loop->idle_work_due_.load(std::memory_order_relaxed) && loop->idle_work_due_.exchange(false, std::memory_order_relaxed))
      loop->do_idle_work();
  return true;
}

/// Ends the service of a loop that has ended. Pre: none of the loop's functions is on the call stack.
void network_threads::let_go(event_loop& loop) {
  ::epoll_ctl(polled_.get(), EPOLL_CTL_DEL, loop.poll_handle(), nullptr);
  loop.left();
  watched_.forget_all(loop);
  std::erase(own_noted_, &loop);
  std::erase(later_, &loop);
  for (auto* all : {&due_, &going_on_}) std::replace(all->begin(), all->end(), &loop, static_cast<event_loop*>(nullptr));
  {
    std::lock_guard lock(notes_mutex_);
    std::erase(loops_, &loop);
    std::erase(noted_, &loop);
  }
  support::let_go_of_logger();
  auto gone = std::move(loop.gone_);  // the loop may be destroyed once the future is ready
  gone.set_value();
}

void network_threads::sleep() {
  {
    std::lock_guard lock(notes_mutex_);
    if (!noted_.empty() || idle_work_due_) return;
    asleep_ = true;
  }
  const bool may_sleep = watched_.may_sleep();  // frees forgotten connections, which may post
  if (may_sleep && own_noted_.empty()) handle_events(true);
  std::lock_guard lock(notes_mutex_);
  asleep_ = false;
}

}  // namespace troupe::network
