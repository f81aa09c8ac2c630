// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/shared_multiplexer.hpp>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <troupe/actors/future.hpp>
#include <troupe/actors/spin_pause.hpp>
#include <troupe/actors/tcp_scribe.hpp>

namespace troupe {

namespace {

using clock = std::chrono::steady_clock;

thread_local const shared_multiplexer* leads = nullptr;
thread_local const shared_multiplexer* serves = nullptr;

void without_exceptions(const std::function<void()>& work) noexcept {
  try {
    work();
  } catch (const std::exception& problem) {
    detail::report_lost_exception("a job of the network thread", problem.what());
  } catch (...) {
    detail::report_lost_exception("a job of the network thread", "an exception of unknown type");
  }
}

}  // namespace

/// A job that waits for a future needs the other thread, which may bring the result.
class shared_multiplexer::job_scope final : public blocking_observer {
 public:
  explicit job_scope(shared_multiplexer& of) : of_(of) { current() = this; }
  ~job_scope() override { current() = nullptr; }
  void blocked() override { of_.wake_other(); }
  void resumed() override {}

 private:
  shared_multiplexer& of_;
};

shared_multiplexer::shared_multiplexer(caf::actor_system* system)
    : default_multiplexer(system), shares_memory_(caf::get_or(system->config(), "troupe.shared-memory", true)) {}

shared_multiplexer::~shared_multiplexer() {
  behind_.clear();
  watched_.clear();
  for (auto* all : {&posted_, &own_posted_})
    while (!all->empty()) {  // one that is released may post another
      auto* last = all->back();
      all->pop_back();
      caf::scheduler::abstract_coordinator::cleanup_and_release(last);
    }
}

void shared_multiplexer::exec_later(caf::resumable* what) {
  if (what->subtype() != caf::resumable::io_actor) return default_multiplexer::exec_later(what);
  if (leads == this) {
    own_posted_.push_back(what);
    return;
  }
  bool wake = false;
  {
    std::lock_guard lock(post_mutex_);
    wake = std::exchange(asleep_, false);
    if (!wake) posted_.push_back(what);
  }
  if (wake)
    default_multiplexer::exec_later(what);  // by its pipe, which wakes who leads
  else if (!led_ && serves != this)
    wake_other();
}

void shared_multiplexer::run() {
  thread_id({});  // no thread leads for good: CAF posts what it would do at once
  std::thread second([this] { serve(); });
  serve();
  second.join();
}

caf::io::scribe_ptr shared_multiplexer::new_scribe(caf::io::network::native_socket socket) {
  caf::io::network::keepalive(socket, true);
  return caf::make_counted<tcp_scribe>(*this, socket);
}

/// Of the two ends this is the one that called.
caf::expected<caf::io::scribe_ptr> shared_multiplexer::new_tcp_scribe(const std::string& host, std::uint16_t port) {
  auto made = default_multiplexer::new_tcp_scribe(host, port);
  if (made) static_cast<tcp_scribe&>(**made).expect_lane();
  return made;
}

void shared_multiplexer::catch_up_soon(tcp_scribe* scribe) { behind_.emplace_back(scribe); }

void shared_multiplexer::set_idle_work(std::function<void()> work) { idle_work_ = std::move(work); }

bool shared_multiplexer::run_soon(job work) {
  if (leads != this) return false;
  {
    std::lock_guard lock(turn_mutex_);
    if (job_runs_ || jobs_are_over_) return false;
    jobs_wait_ = true;
  }
  new_jobs_.push_back(std::move(work));
  return true;
}

void shared_multiplexer::finish_jobs() {
  std::unique_lock lock(turn_mutex_);
  jobs_are_over_ = true;
  told_.wait(lock, [&] { return !job_runs_ && !jobs_wait_ && !jobs_leave_; });
}

/// Has the thread that stands by lead, if none does.
void shared_multiplexer::wake_other() {
  std::lock_guard lock(turn_mutex_);
  if (one_leads_) return;
  called_ = true;
  told_.notify_all();
}

void shared_multiplexer::serve() {
  serves = this;
  for (bool may_lead = true; !over_;)
    if (may_lead && take()) {
      run_jobs(lead());
    } else {
      may_lead = stand_by();
    }
  serves = nullptr;
}

bool shared_multiplexer::take() noexcept {
  if (led_.exchange(true, std::memory_order_acquire)) return false;
  leads = this;
  times_led_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void shared_multiplexer::release() noexcept {
  leads = nullptr;
  led_.store(false, std::memory_order_release);
}

/// Until there is a job, which this thread is to run.
std::optional<shared_multiplexer::job> shared_multiplexer::lead() {
  {
    std::lock_guard lock(turn_mutex_);
    one_leads_ = true;
    called_ = false;
  }
  send_stuck_jobs();
  while (num_socket_handlers() > 0 && new_jobs_.empty()) step();
  resume_posted();  // what went wrong with a message that was read is known to this thread alone
  std::optional<job> first;
  {
    std::lock_guard lock(turn_mutex_);
    one_leads_ = false;
    if (new_jobs_.empty()) {
      over_ = true;
    } else {
      job_runs_ = job_ran_ = true;
      first = std::move(new_jobs_.front());
      new_jobs_.pop_front();
    }
    jobs_.swap(new_jobs_);
    jobs_wait_ = false;
    if (over_ || !one_looks_) told_.notify_all();
  }
  release();
  if (has_posts()) wake_other();
  return first;
}

/// True if nobody seems to lead.
bool shared_multiplexer::stand_by() {
  std::unique_lock lock(turn_mutex_);
  if (over_) return false;
  if (one_looks_ || (one_leads_ && !std::exchange(job_ran_, false))) {
    told_.wait(lock);
    return called_;
  }
  const auto seen = times_led_.load(std::memory_order_relaxed);
  one_looks_ = true;
  told_.wait_for(lock, tick, [&] { return called_ || over_; });
  one_looks_ = false;
  return called_ || times_led_.load(std::memory_order_relaxed) == seen;
}

/// The first, and those behind it.
void shared_multiplexer::run_jobs(std::optional<job> next) {
  const job_scope other_leads_meanwhile(*this);
  std::unique_lock lock(turn_mutex_, std::defer_lock);
  while (next) {
    without_exceptions(next->run);
    next.reset();
    lock.lock();
    if (!jobs_.empty()) {
      next = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
    }
  }
  if (!lock.owns_lock()) return;
  job_runs_ = false;
  if (jobs_are_over_) told_.notify_all();
}

/// They wait behind one that takes its time.
void shared_multiplexer::send_stuck_jobs() {
  std::deque<job> stuck;
  {
    std::lock_guard lock(turn_mutex_);
    if (jobs_.empty()) return;
    stuck.swap(jobs_);
    jobs_leave_ = true;
  }
  for (const auto& each : stuck) without_exceptions(each.send_elsewhere);
  stuck.clear();
  std::lock_guard lock(turn_mutex_);
  jobs_leave_ = false;
  told_.notify_all();
}

/// Resumes what is due and handles events, or waits for one.
void shared_multiplexer::step() {
  bool any = resume_posted();
  if (look_at_watched()) {
    any = true;
    ++unpolled_;
  } else {
    unpolled_ = 0;
  }
  if (unpolled_ % (most_unpolled + 1) == 0) any = poll_once(false) || any;
  if (any) {
    note_event();
  } else if (idle_work_due_.load(std::memory_order_relaxed) && idle_work_due_.exchange(false, std::memory_order_acquire)) {
    idle_work_();
  } else if (close_events_ >= enough_close_events && clock::now() - last_event_ < awake_for) {
    detail::spin_pause();
  } else {
    sleep();
    note_event();
  }
  catch_up();
}

/// Those that are close to the one before count, a pause halves their number and a long one ends it.
void shared_multiplexer::note_event() {
  const auto since = clock::now() - last_event_;
  close_events_ = since < awake_for ? close_events_ + 1 : since < 4 * awake_for ? close_events_ / 2 : 0;
  last_event_ += since;
}

bool shared_multiplexer::has_posts() {
  std::lock_guard lock(post_mutex_);
  return !posted_.empty();
}

bool shared_multiplexer::resume_posted() {
  bool any = false;
  for (;;) {
    {
      std::lock_guard lock(post_mutex_);
      due_.swap(posted_);
    }
    due_.insert(due_.end(), own_posted_.begin(), own_posted_.end());
    own_posted_.clear();
    if (due_.empty() && behind_.empty()) break;
    any = true;
    for (auto* each : due_) {
      resume(caf::intrusive_ptr<caf::resumable>(each, false));
      catch_up();
    }
    due_.clear();
    catch_up();  // where none was resumed
  }
  if (any) handle_internal_events();
  return any;
}

/// What was flushed leaves before anything is waited for.
void shared_multiplexer::catch_up() {
  if (behind_.empty()) return;
  while (!behind_.empty()) {
    catching_up_.swap(behind_);
    for (const auto& each : catching_up_) each->catch_up();
    catching_up_.clear();
  }
  handle_internal_events();
}

void shared_multiplexer::watch(tcp_scribe* scribe) {
  const auto same = [&](const watched& each) { return each.scribe == scribe; };
  if (std::any_of(watched_.begin(), watched_.end(), same)) return;
  watched_.push_back({caf::intrusive_ptr<tcp_scribe>(scribe), clock::now()});
}

void shared_multiplexer::forget(tcp_scribe* scribe) {
  for (auto& each : watched_)
    if (each.scribe == scribe) forgotten_.push_back(std::move(each.scribe));
}

/// One may have others watched, or forgotten.
bool shared_multiplexer::look_at_watched() {
  if (watched_.empty()) return false;
  bool any = false;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    const auto scribe = watched_[i].scribe;
    if (!scribe || !scribe->look()) continue;
    watched_[i].had_traffic = clock::now();
    any = true;
  }
  forgotten_.clear();
  std::erase_if(watched_, [](const watched& each) { return !each.scribe; });
  drop_one_if_quiet();
  handle_internal_events();
  return any;
}

/// The next in turn. It is watched again once the other end wakes it.
void shared_multiplexer::drop_one_if_quiet() {
  if (watched_.empty()) return;
  const auto quiet_for = watched_.size() > most_watched ? std::chrono::milliseconds{0} : watched_for;
  next_watched_ = (next_watched_ + 1) % watched_.size();
  const auto at = watched_.begin() + static_cast<std::ptrdiff_t>(next_watched_);
  if (clock::now() - at->had_traffic >= quiet_for && at->scribe->may_sleep()) watched_.erase(at);
}

bool shared_multiplexer::watched_may_sleep() {
  forgotten_.clear();
  const auto may = [](const watched& each) { return !each.scribe || each.scribe->may_sleep(); };
  return std::all_of(watched_.begin(), watched_.end(), may);
}

void shared_multiplexer::sleep() {
  {
    std::lock_guard lock(post_mutex_);
    if (!posted_.empty()) return;
    asleep_ = true;
  }
  if (watched_may_sleep()) poll_once(true);
  std::lock_guard lock(post_mutex_);
  asleep_ = false;
}

}  // namespace troupe
