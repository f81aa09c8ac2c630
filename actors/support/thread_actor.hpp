// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>
#include <memory>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/blocking_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/support/logger_release.hpp>
#include <troupe/actors/support/thread_stay.hpp>

namespace troupe::support {

/// Where a test says which actor runs next, no actor has a thread: actors with an interface run on the scheduler of the system.
inline bool has_no_threads(const caf::actor_system& system) { return caf::get_or(system.config(), "troupe.no-threads", false); }

template <class Handle, class MakeHandlers>
Handle spawn_without_thread(caf::actor_system& system, MakeHandlers make_handlers) {
  return system.spawn([make = std::move(make_handlers)](typename Handle::pointer self) {
    return std::apply([](auto... handlers) { return typename Handle::behavior_type{handlers...}; }, make(Handle(self)));
  });
}

/// An actor with a thread of its own. The thread handles one message after another until the actor gets an exit message.
///   TA-1  if the system gives no thread, spawning throws std::system_error, and no actor is left. (CAF counts a detached actor
///         before it asks for the thread. Without the thread the actor system would wait for that actor for ever.)
///   TA-2  the destructor of the actor system waits until the thread has ended, unless the thread was left alone (thread_stay.hpp).
/// `make_handlers(self)` returns a tuple of handlers, those of the interface of `Handle`; it runs on the new thread. A handler may
/// return the answer to its message, and must not throw. The name of the thread has at most 15 characters.
template <class Handle, class MakeHandlers>
Handle spawn_handlers_with_thread(caf::actor_system& system, const char* name, MakeHandlers make_handlers) {
  const logger_release lets_go;
  if constexpr (!std::is_same_v<Handle, caf::actor>)
    if (has_no_threads(system)) return spawn_without_thread<Handle>(system, std::move(make_handlers));
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

/// An actor with a thread of its own for one type of message: `handle(job, self)` handles each `Job`.
template <class Job, class Handle = caf::actor, class Serve>
Handle spawn_with_thread(caf::actor_system& system, const char* name, Serve handle) {
  return spawn_handlers_with_thread<Handle>(system, name, [handle = std::move(handle)](const Handle& self) {
    return std::tuple{[handle, self](Job& job) { handle(job, self); }};
  });
}

}  // namespace troupe::support
