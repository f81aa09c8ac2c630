// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/memory_reader.hpp>

#include <exception>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/messages/arriving_tensors.hpp>

namespace troupe::transfers {

contracts::memory_reader_actor spawn_memory_reader(services::node_services& here) {
  auto read = [&here](contracts::incoming_offer_ptr& job, const caf::actor&) {
    try {
      job->failure = here.arriving().read(job->offer, job->given);
    } catch (const std::exception& reason) {  // no memory for the tensor
      job->failure = error(errc::function_failed, reason.what());
    }
    caf::anon_send(here.gateway(), std::move(job));
  };
  return caf::actor_cast<contracts::memory_reader_actor>(
    support::spawn_with_thread<contracts::incoming_offer_ptr>(here.system(), "troupe.reader", std::move(read)));
}

}  // namespace troupe::transfers
