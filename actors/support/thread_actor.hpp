// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/support/thread_actor_test.cpp, tests/actors/worker_team_test.cpp
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include <caf/abstract_actor.hpp>
#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/blocking_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/support/logger_release.hpp>

namespace troupe::support {

/// Thrown to end the thread of an actor without use of the actor system, which may be gone.
struct left_alone {};

/// Says where the thread of an actor is: in its actor, or in work of the user, which may run for long. Lets the actor system
/// end while the work still runs.
///   XS-1  after leave_alone() has returned true, the system does not wait for the actor any more, and the thread uses nothing
///         of the system: the thread ends when its work is over.
///   XS-2  leave_alone() returns false, and changes nothing, while the thread runs no work.
class thread_stay {
 public:
  /// Runs work of the user on the thread of the actor. `work` must not throw.
  template <class F>
  void outside(F&& work) {
    let_go_of_logger();  // the end of the system would wait for the logger
    where_ = position::outside;
    work();
    auto expected = position::outside;
    if (!where_.compare_exchange_strong(expected, position::inside)) throw left_alone();
  }

  /// To be called by another thread. `actor`: the actor of the thread, which has been told to end.
  bool leave_alone(caf::actor_system& system, const caf::actor& actor) noexcept {
    auto expected = position::outside;
    if (!where_.compare_exchange_strong(expected, position::left)) return false;
    caf::actor_cast<caf::abstract_actor*>(actor)->unregister_from_system();
    system.dec_detached_threads();
    return true;
  }

 private:
  enum class position { inside, outside, left };
  std::atomic<position> where_{position::inside};
};

using thread_stay_ptr = std::shared_ptr<thread_stay>;

inline thread_stay_ptr new_thread_stay() { return std::make_shared<thread_stay>(); }

/// Never destroys the actor of a thread that was left alone, because its destructor would use the actor system.
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

/// An actor with a thread of its own. The thread handles one message after another until the actor gets an exit message.
///   TA-1  if the system gives no thread, spawning throws std::system_error, and no actor is left. (CAF counts a detached actor
///         before it asks for the thread. Without the thread the actor system would wait for that actor for ever.)
///   TA-2  the destructor of the actor system waits until the thread has ended, unless the thread was left alone (see
///         thread_stay).
/// `make_handlers(self)` returns a tuple of handlers, those of the interface of `Handle`; it runs on the new thread. A handler
/// may return the answer to its message, and must not throw. The name of the thread has at most 15 characters.
template <class Handle, class MakeHandlers>
Handle spawn_handlers_with_thread(caf::actor_system& system, const char* name, MakeHandlers make_handlers) {
  const logger_release lets_go;
  auto mailbox = std::make_unique<caf::scoped_actor>(system);
  auto self = caf::actor_cast<Handle>(caf::actor(*mailbox));
  auto run = [&system, name, mailbox = std::move(mailbox), self, make_handlers = std::move(make_handlers)]() mutable {
    ::pthread_setname_np(::pthread_self(), name);  // otherwise the thread has the name of the thread that spawned it
    bool over = false;
    const auto end = [&](const caf::exit_msg&) { over = true; };
    const auto receive = [&](auto... handlers) {
      if constexpr (!std::is_same_v<Handle, caf::actor>) static_cast<void>(typename Handle::behavior_type{handlers...});
      (*mailbox)->do_receive(handlers..., end).until([&] { return over; });
    };
    try {
      const auto make = std::move(make_handlers);  // destroyed before dec_detached_threads lets the system end
      std::apply(receive, make(self));
    } catch (const left_alone&) {
      return keep_for_ever(std::move(mailbox));
    }
    self = Handle{};
    mailbox = nullptr;
    system.dec_detached_threads();
  };
  system.inc_detached_threads();
  try {
    std::thread(std::move(run)).detach();
  } catch (...) {
    system.dec_detached_threads();
    throw;
  }
  return self;
}

/// Whether calls, bursts and sums run without threads of their own, because a test decides which actor of the system runs next.
inline bool has_no_threads(const caf::actor_system& system) { return caf::get_or(system.config(), "troupe.no-threads", false); }

/// As spawn_handlers_with_thread, but on the scheduler of a system that has_no_threads().
template <class Handle, class MakeHandlers>
Handle spawn_handlers(caf::actor_system& system, const char* name, MakeHandlers make_handlers) {
  if (!has_no_threads(system)) return spawn_handlers_with_thread<Handle>(system, name, std::move(make_handlers));
  const logger_release lets_go;
  return system.spawn([make = std::move(make_handlers)](typename Handle::pointer self) {
    return std::apply([](auto... handlers) { return typename Handle::behavior_type{handlers...}; }, make(Handle(self)));
  });
}

}  // namespace troupe::support
