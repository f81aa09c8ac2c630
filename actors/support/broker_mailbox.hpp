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

/// Every behaviour that may run as a broker calls this first: when the actor ends, its mailbox closes, what is left in it
/// is dropped, and whoever waits for an answer to it is told at once.
/// CAF 0.17 does so for all actors but brokers. A message left there keeps its sender alive; if that one is detached, its
/// thread keeps the actor system from ending.
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

/// The same for CAF's own broker, which ends while a connection may still be asked of it. To be called before anything runs on
/// the system, which has a middleman.
inline void close_basp_mailbox_at_exit(caf::actor_system& system) {
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  close_mailbox_at_exit(static_cast<caf::io::basp_broker*>(caf::actor_cast<caf::abstract_actor*>(broker)));
}

}  // namespace troupe::support
