// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_set>

#include <caf/actor_system.hpp>
#include <caf/detail/thread_safe_actor_clock.hpp>
#include <caf/policy/work_sharing.hpp>
#include <caf/scheduler/coordinator.hpp>

#include <troupe/messages/mutex.hpp>

namespace troupe::network {

/// CAF's clock, but with fewer wake-ups of its thread. Every actor that ends asks the clock to cancel the actor's timeouts,
/// which wakes the clock's thread twice. This clock passes such a request on only if the actor has set a timeout. Most
/// actors have set none, and they end often: on each node one `graph_task` actor for each pass.
///   QC-1  an actor's timeouts are cancelled when the actor ends.
class quiet_clock final : public caf::detail::thread_safe_actor_clock {
 public:
  using actor = caf::abstract_actor;

  explicit quiet_clock(caf::actor_clock& real) : real_(real) {}

  void set_ordinary_timeout(time_point when, actor* who, caf::atom_value type, std::uint64_t id) override {
    note(who);
    real_.set_ordinary_timeout(when, who, type, id);
  }
  void set_multi_timeout(time_point when, actor* who, caf::atom_value type, std::uint64_t id) override {
    note(who);
    real_.set_multi_timeout(when, who, type, id);
  }
  void set_request_timeout(time_point when, actor* who, caf::message_id id) override {
    note(who);
    real_.set_request_timeout(when, who, id);
  }
  void cancel_ordinary_timeout(actor* who, caf::atom_value type) override { real_.cancel_ordinary_timeout(who, type); }
  void cancel_request_timeout(actor* who, caf::message_id id) override { real_.cancel_request_timeout(who, id); }
  void cancel_timeouts(actor* who) override {
    {
      checked_lock lock(mutex_);
      if (with_timeouts_.erase(who) == 0) return;
    }
    real_.cancel_timeouts(who);
  }
  void schedule_message(time_point when, caf::strong_actor_ptr to, caf::mailbox_element_ptr what) override {
    real_.schedule_message(when, std::move(to), std::move(what));
  }
  void schedule_message(time_point when, caf::group to, caf::strong_actor_ptr from, caf::message what) override {
    real_.schedule_message(when, std::move(to), std::move(from), std::move(what));
  }
  void cancel_all() override { real_.cancel_all(); }

 private:
  void note(actor* who) {
    checked_lock lock(mutex_);
    with_timeouts_.insert(who);
  }

  caf::actor_clock& real_;
  checked_mutex mutex_;
  std::unordered_set<actor*> with_timeouts_ TROUPE_GUARDED_BY(mutex_);
};

/// CAF's scheduler with one shared queue, and quiet_clock.
class quiet_scheduler final : public caf::scheduler::coordinator<caf::policy::work_sharing> {
 public:
  using super = caf::scheduler::coordinator<caf::policy::work_sharing>;

  explicit quiet_scheduler(caf::actor_system& system) : super(system), clock_(super::clock()) {}

  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>) {
    return new quiet_scheduler(system);
  }

  quiet_clock& clock() noexcept override { return clock_; }

 private:
  quiet_clock clock_;
};

}  // namespace troupe::network
