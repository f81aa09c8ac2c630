// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/atom.hpp>
#include <caf/detail/sync_request_bouncer.hpp>
#include <caf/error.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>

namespace troupe::support {

/// Every behaviour that may run as a broker calls this first. When the actor ends, its mailbox closes, the messages in it are
/// dropped, and senders that wait for an answer are told at once. CAF 0.17 does so for all actors except brokers. A message
/// that stays in a mailbox keeps its sender alive; the thread of a detached sender then keeps the actor system from ending.
template <class Self>
void close_mailbox_at_exit(Self self) {
  self->attach_functor([self](const caf::error& reason) {
    auto& mailbox = self->mailbox();
    if (mailbox.closed()) return;
    mailbox.close();
    mailbox.flush_cache();
    caf::detail::sync_request_bouncer bounce{reason};
    while (mailbox.queue().new_round(1000, bounce).consumed_items) continue;
  });
}

/// Closes the mailbox of CAF's own broker in the same way: this broker may end while a request for a connection waits. To be
/// called before anything runs on the system, which must have a middleman.
inline void close_basp_mailbox_at_exit(caf::actor_system& system) {
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  close_mailbox_at_exit(static_cast<caf::io::basp_broker*>(caf::actor_cast<caf::abstract_actor*>(broker)));
}

}  // namespace troupe::support
