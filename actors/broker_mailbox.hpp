// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <caf/detail/sync_request_bouncer.hpp>
#include <caf/error.hpp>

namespace troupe {

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

}  // namespace troupe
