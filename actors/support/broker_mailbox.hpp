// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/support/broker_mailbox_test.cpp, tests/actors/support/shared_life_test.cpp
#pragma once

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/atom.hpp>
#include <caf/detail/sync_request_bouncer.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scheduled_actor.hpp>

#include <troupe/messages/expect.hpp>

namespace troupe::support {

/// Closes the mailbox of an actor when the actor ends: messages in it are dropped, and senders that wait for an answer get an
/// error at once. Every behaviour that may run as a broker calls this function first. CAF 0.17 closes the mailboxes of all
/// actors except brokers. A message in the mailbox of an ended broker would keep its sender alive. If that sender has a thread
/// of its own, the thread would keep the actor system from ending.
inline void close_mailbox_at_exit(caf::scheduled_actor* self) {
  self->attach_functor([self](const caf::error& reason) {
    auto& mailbox = self->mailbox();
    if (mailbox.closed()) return;
    mailbox.close();
    mailbox.flush_cache();
    caf::detail::sync_request_bouncer bounce{reason};
    while (mailbox.queue().new_round(1000, bounce).consumed_items) continue;
  });
}

/// Closes the mailbox of CAF's own broker when that broker ends, which may be while a request for a connection waits. To be
/// called before the first actor runs on the system. Pre: the system has a middleman.
inline void close_basp_mailbox_at_exit(caf::actor_system& system) {
  TROUPE_EXPECT(system.has_middleman());
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  close_mailbox_at_exit(static_cast<caf::io::basp_broker*>(caf::actor_cast<caf::abstract_actor*>(broker)));
}

/// Ends the actor when `other` ends, or now if `other` is empty. The code that spawns the actor passes `other`, because a lazy
/// actor runs for the first time when its first message comes, and `other` may have ended by then.
inline void live_as_long_as(caf::scheduled_actor* self, const caf::actor& other) {
  if (other)
    self->link_to(other);
  else
    self->quit(caf::exit_reason::user_shutdown);
}

}  // namespace troupe::support
