// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/worker_team_test.cpp
#pragma once

#include <atomic>
#include <memory>

#include <caf/abstract_actor.hpp>
#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/support/logger_release.hpp>

namespace troupe::support {

/// Ends the thread of an actor without its actor system, which may be gone.
struct left_alone {};

/// Where the thread of an actor is: in its actor, or in work of the user, which may run for long. Lets the actor system end while the work
/// still runs.
///   XS-1  after leave_alone() has returned true, the system does not wait for the actor any more, and the thread uses nothing of the
///         system: the thread ends when its work is over.
///   XS-2  leave_alone() returns false, and changes nothing, while the thread runs no work.
class thread_stay {
 public:
  /// Runs work of the user on the thread of the actor. `work` must not throw.
  template <class F>
  void outside(F&& work) {
    let_go_of_logger();  // the system would wait for it
    where_ = place::outside;
    work();
    auto expected = place::outside;
    if (!where_.compare_exchange_strong(expected, place::inside)) throw left_alone();
  }

  /// For another thread. `actor`: that of the thread; it has been told to end.
  bool leave_alone(caf::actor_system& system, const caf::actor& actor) noexcept {
    auto expected = place::outside;
    if (!where_.compare_exchange_strong(expected, place::left)) return false;
    caf::actor_cast<caf::abstract_actor*>(actor)->unregister_from_system();
    system.dec_detached_threads();
    return true;
  }

 private:
  enum class place { inside, outside, left };
  std::atomic<place> where_{place::inside};
};

using thread_stay_ptr = std::shared_ptr<thread_stay>;

inline thread_stay_ptr new_thread_stay() { return std::make_shared<thread_stay>(); }

/// Keeps the actor of a thread that was left alone: its destructor would use the actor system.
inline void keep_for_ever(std::unique_ptr<caf::scoped_actor> actor) {
  struct kept {
    caf::scoped_actor* actor;
    kept* next;
  };
  static std::atomic<kept*> all{nullptr};  // so that tools that look for leaks find none
  auto* const mine = new kept{actor.release(), all.load()};
  while (!all.compare_exchange_weak(mine->next, mine)) {
  }
}

}  // namespace troupe::support
