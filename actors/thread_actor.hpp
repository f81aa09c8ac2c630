// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>
#include <memory>
#include <thread>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/blocking_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/system_messages.hpp>

namespace troupe {

/// An actor with a thread of its own, which handles one `Job` after another until it is told to exit.
///   TA-1  where the system gives no thread it throws std::system_error, and nothing is left. (CAF counts a detached actor before it
///         asks for the thread: at its end the system would wait for that actor for ever.)
///   TA-2  the actor system ends after the thread.
/// `handle(job, self)` must not throw. The thread's name has at most 15 characters.
template <class Job, class Handle>
caf::actor spawn_with_thread(caf::actor_system& system, const char* name, Handle handle) {
  auto mailbox = std::make_unique<caf::scoped_actor>(system);
  caf::actor self = *mailbox;
  auto run = [&system, name, mailbox = std::move(mailbox), self, handle = std::move(handle)]() mutable {
    ::pthread_setname_np(::pthread_self(), name);  // else it has the name of the thread that spawns it
    bool over = false;
    (*mailbox)->do_receive([&](Job& job) { handle(job, self); }, [&](const caf::exit_msg&) { over = true; }).until([&] {
      return over;
    });
    self = nullptr;
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

}  // namespace troupe
