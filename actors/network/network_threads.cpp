// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/network_threads.hpp>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <exception>
#include <iterator>
#include <system_error>

#include <troupe/actors/network/tcp_scribe.hpp>
#include <troupe/actors/support/blocking_observer.hpp>
#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/lost_exception.hpp>
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
    support::report_lost_exception("a job of the network thread", problem.what());
  } catch (...) {
    support::report_lost_exception("a job of the network thread", "an exception of unknown type");
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

/// Makes the other thread lead while a job waits for a future, because the future's result may come by a connection.
class network_threads::job_scope final : public blocking_observer {
 public:
  explicit job_scope(network_threads& of) : of_(of) { current() = this; }
  ~job_scope() override { current() = nullptr; }
  void blocked() override {
    {
      const checked_lock lock(of_.turns_.mutex);
      of_.turns_.job_began = {};
    }
    of_.wake_other();
  }
  void resumed() override {}

 private:
  network_threads& of_;
};

std::shared_ptr<network_threads> network_threads::of_process() {
  static checked_mutex mutex;
  static std::weak_ptr<network_threads> known TROUPE_GUARDED_BY(mutex);
  checked_lock lock(mutex);
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
    checked_lock lock(turns_.mutex);
    over_ = true;
    turns_.told.notify_all();
  }
  support::ring(bell_.get());
  for (auto& thread : threads_) thread.join();
}

std::future<void> network_threads::serve(event_loop& loop) {
  auto gone = loop.gone_.get_future();
  {
    checked_lock lock(notes_.mutex);
    notes_.loops.push_back(&loop);
  }
  // ask_for_idle_work() may have been called before serve(). Then the leader did not know the loop when it looked for idle
  // work.
  if (loop.idle_work_due_) idle_work_due_ = true;
  add_to(polled_.get(), loop.poll_handle(), &loop);
  note(loop);  // there may be posts from before serve()
  return gone;
}

bool network_threads::lead_here() const noexcept { return leads == this; }

void network_threads::note(event_loop& loop) {
  if (lead_here()) {
    leader_.noted.push_back(&loop);
    return;
  }
  bool wake = false;
  {
    checked_lock lock(notes_.mutex);
    assert(std::find(notes_.loops.begin(), notes_.loops.end(), &loop) != notes_.loops.end());
    notes_.noted.push_back(&loop);
    wake = std::exchange(notes_.asleep, false);
  }
  if (wake)
    support::ring(bell_.get());
  else if (!led_ && serves != this)
    wake_other();
}

void network_threads::note_later(event_loop& loop) { leader_.later.push_back(&loop); }

bool network_threads::run_soon(event_loop& of, job work) {
  if (!lead_here()) return false;
  {
    checked_lock lock(turns_.mutex);
    if (!of.takes_jobs_ || (turns_.job_runs && (!work.takes_turns || is_stuck()))) return false;
    ++of.jobs_;
    if (turns_.job_runs) {
      turns_.jobs.push_back({&of, std::move(work)});
      jobs_wait_ = true;
      return true;
    }
  }
  leader_.new_jobs.push_back({&of, std::move(work)});
  return true;
}

void network_threads::finish_jobs(event_loop& of) {
  checked_unique_lock lock(turns_.mutex);
  of.takes_jobs_ = false;
  turns_.job_ended.wait(lock, [&] { return of.jobs_ == 0; });
}

void network_threads::ask_for_idle_work(event_loop& of) {
  of.idle_work_due_.store(true, std::memory_order_relaxed);
  if (idle_work_due_.exchange(true, std::memory_order_acq_rel)) return;
  bool wake = false;
  {
    checked_lock lock(notes_.mutex);
    wake = std::exchange(notes_.asleep, false);
  }
  if (wake) support::ring(bell_.get());
}

/// If no thread leads, makes the thread that stands by lead.
void network_threads::wake_other() {
  checked_lock lock(turns_.mutex);
  if (turns_.now == leadership::held) return;
  turns_.now = leadership::called;
  turns_.told.notify_all();
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
    checked_lock lock(turns_.mutex);
    turns_.now = leadership::held;
  }
  send_stuck_jobs();
  while (!over_ && leader_.new_jobs.empty()) step();
  // note() has woken no other thread for the posts of this thread. Neighbours that these posts ring wait for the next leader.
  handle_posts();
  std::optional<queued_job> first;
  {
    checked_lock lock(turns_.mutex);
    turns_.now = leadership::vacant;
    if (!leader_.new_jobs.empty()) {
      turns_.job_runs = turns_.job_ran = true;
      turns_.job_began = clock::now();
      first = std::move(leader_.new_jobs.front());
      leader_.new_jobs.pop_front();
    }
    turns_.jobs.swap(leader_.new_jobs);
    jobs_wait_ = !turns_.jobs.empty();
    if (over_ || !turns_.one_looks) turns_.told.notify_all();
  }
  const bool goes_on = !leader_.noted.empty() || !leader_.later.empty();
  release();
  if (goes_on || any_noted()) wake_other();
  return first;
}

/// Waits for a turn to lead. Returns whether this thread has to try to lead, because no thread seems to lead.
bool network_threads::stand_by() {
  checked_unique_lock lock(turns_.mutex);
  if (over_) return false;
  if (turns_.one_looks || (turns_.now == leadership::held && !std::exchange(turns_.job_ran, false))) {
    turns_.told.wait(lock);
    return turns_.now == leadership::called;
  }
  const auto seen = times_led_.load(std::memory_order_relaxed);
  turns_.one_looks = true;
  turns_.told.wait_for(lock, tick, [&]() TROUPE_REQUIRES(turns_.mutex) { return turns_.now == leadership::called || over_; });
  turns_.one_looks = false;
  return turns_.now == leadership::called || times_led_.load(std::memory_order_relaxed) == seen;
}

/// Runs `next` and the jobs that wait behind it.
void network_threads::run_jobs(std::optional<queued_job> next) {
  const job_scope other_leads_meanwhile(*this);
  while (next) {
    without_exceptions(next->work.run);
    next->work = {};  // before finish_jobs() returns, because the node that the job uses may end then
    support::let_go_of_logger();
    checked_lock lock(turns_.mutex);
    if (--next->of->jobs_ == 0) turns_.job_ended.notify_all();
    next.reset();
    if (turns_.jobs.empty()) {
      turns_.job_runs = false;
    } else {
      next = std::move(turns_.jobs.front());
      turns_.jobs.pop_front();
      turns_.job_began = clock::now();
      jobs_wait_ = !turns_.jobs.empty();
    }
  }
}

/// Whether the job that runs holds others up.
bool network_threads::is_stuck() const { return clock::now() - turns_.job_began >= longest_turn; }

/// Sends elsewhere the jobs that wait behind a long job.
void network_threads::send_stuck_jobs() {
  std::deque<queued_job> stuck;
  {
    checked_lock lock(turns_.mutex);
    auto& jobs = turns_.jobs;
    const bool may_wait = !is_stuck();
    const auto first =
      std::find_if(jobs.begin(), jobs.end(), [&](const queued_job& each) { return !may_wait || !each.work.takes_turns; });
    std::move(first, jobs.end(), std::back_inserter(stuck));
    jobs.erase(first, jobs.end());
    jobs_wait_ = !jobs.empty();
  }
  for (auto& each : stuck) {
    without_exceptions(each.work.send_elsewhere);
    each.work = {};
    checked_lock lock(turns_.mutex);
    if (--each.of->jobs_ == 0) turns_.job_ended.notify_all();
  }
}

/// Handles the posts and events that are there now. If there are none: does idle work, polls again or sleeps.
void network_threads::step() {
  if (jobs_wait_) send_stuck_jobs();
  bool any = handle_posts();
  if (look_at_watched()) {
    any = true;
    ++leader_.unpolled;
  } else {
    leader_.unpolled = 0;
  }
  if (leader_.unpolled % (most_unpolled + 1) == 0) {
    any = handle_events(false) || any;
    any = go_on() || any;
  }
  if (any || !leader_.later.empty()) {
    note_event();
    if (leader_.last_event - leader_.last_idle < longest_busy) return;
  }
  leader_.last_idle = leader_.last_event;
  if (do_idle_work() || any) return;
  if (jobs_wait_ || (leader_.close_events >= enough_close_events && clock::now() - leader_.last_event < awake_for)) {
    detail::spin_pause();
  } else {
    sleep();
    note_event();
    leader_.last_idle = leader_.last_event;
  }
}

/// Counts events that come soon after the event before them. A pause halves the count; a long pause sets the count to zero.
void network_threads::note_event() {
  const auto since = clock::now() - leader_.last_event;
  leader_.close_events = since < awake_for ? leader_.close_events + 1 : since < 4 * awake_for ? leader_.close_events / 2 : 0;
  leader_.last_event += since;
}

bool network_threads::any_noted() {
  checked_lock lock(notes_.mutex);
  return !notes_.noted.empty();
}

/// Handles posts, and then the posts that these have caused, for `most_rounds` rounds at most. Then the sockets have their
/// turn.
bool network_threads::handle_posts() {
  bool any = false;
  for (int round = 0; round < most_rounds; ++round) {
    {
      checked_lock lock(notes_.mutex);
      leader_.due.swap(notes_.noted);
    }
    leader_.due.insert(leader_.due.end(), leader_.noted.begin(), leader_.noted.end());
    leader_.noted.clear();
    if (leader_.due.empty()) break;
    for (std::size_t i = 0; i < leader_.due.size(); ++i)
      if (auto* loop = leader_.due[i]) {  // null: the loop has left
        any = loop->handle_posts() || any;
        if (loop->ended()) let_go(*loop);
      }
    leader_.due.clear();
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
      support::quiet(bell_.get());
    }
  return count > 0;
}

/// Calls go_on() of the loops that note_later() has noted.
bool network_threads::go_on() {
  if (leader_.later.empty()) return false;
  leader_.going_on.swap(leader_.later);
  for (std::size_t i = 0; i < leader_.going_on.size(); ++i)
    if (auto* loop = leader_.going_on[i]) {  // null: the loop has left
      loop->go_on();
      if (loop->ended()) let_go(*loop);
    }
  leader_.going_on.clear();
  return true;
}

bool network_threads::look_at_watched() {
  std::vector<event_loop*> ended;
  const bool any = leader_.watched.look(ended);
  for (auto* loop : ended) let_go(*loop);
  return any;
}

bool network_threads::do_idle_work() {
  if (!idle_work_due_.load(std::memory_order_relaxed) || !idle_work_due_.exchange(false, std::memory_order_acq_rel))
    return false;
  std::vector<event_loop*> all;
  {
    checked_lock lock(notes_.mutex);
    all = notes_.loops;
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
  leader_.watched.forget_all(loop);
  std::erase(leader_.noted, &loop);
  std::erase(leader_.later, &loop);
  for (auto* all : {&leader_.due, &leader_.going_on})
    std::replace(all->begin(), all->end(), &loop, static_cast<event_loop*>(nullptr));
  {
    checked_lock lock(notes_.mutex);
    std::erase(notes_.loops, &loop);
    std::erase(notes_.noted, &loop);
  }
  support::let_go_of_logger();
  auto gone = std::move(loop.gone_);  // the loop may be destroyed once the future is ready
  gone.set_value();
}

void network_threads::sleep() {
  {
    checked_lock lock(notes_.mutex);
    if (!notes_.noted.empty() || idle_work_due_) return;
    notes_.asleep = true;
  }
  const bool may_sleep = leader_.watched.may_sleep();  // frees forgotten connections; their destructors may post
  if (may_sleep && leader_.noted.empty() && leader_.new_jobs.empty()) handle_events(true);
  checked_lock lock(notes_.mutex);
  notes_.asleep = false;
}

}  // namespace troupe::network
