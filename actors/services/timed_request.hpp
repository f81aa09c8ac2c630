// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <utility>

#include <caf/duration.hpp>
#include <caf/error.hpp>
#include <caf/sec.hpp>

#include <troupe/actors/services/uses.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/desk_actor.hpp>
#include <troupe/actors/support/open_requests.hpp>

namespace troupe::services {

/// Sends a request with a deadline, like desk_actor::request(), but without a timer of CAF: CAF stores a timer for each request
/// until the deadline, even if the answer has come. The caller cancels `alarm` when the answer has come. A caller that cancels
/// `alarm` earlier has to end the request too, or the handlers of the request stay in memory.
template <class To, class... Values>
auto timed_request(support::desk_actor self, uses<with_deadlines> here, const To& to, std::chrono::milliseconds limit,
                   support::deadline_clock::alarm& alarm, Values&&... question) {
  auto handle = self->request(to, caf::infinite, std::forward<Values>(question)...);
  alarm = here.deadlines.set(limit, [weak = caf::weak_actor_ptr{self->ctrl()}, id = handle.id()] {
    if (auto strong = weak.lock()) support::end_request(strong.get(), id, caf::make_error(caf::sec::request_timeout));
  });
  return handle;
}

}  // namespace troupe::services
