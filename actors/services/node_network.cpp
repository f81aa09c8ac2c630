// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/node_network.hpp>

#include <utility>

#include <troupe/actors/network/shared_multiplexer.hpp>

namespace troupe::services {

bool node_network::run_soon(const support::work_times& times, std::string_view kind, std::function<void()> run,
                            std::function<void()> send_elsewhere, bool is_behind) const {
  return multiplexer != nullptr && times.is_short(kind) &&
         multiplexer->run_soon({std::move(run), std::move(send_elsewhere), takes_turns || is_behind});
}

gate::own_actors::hold guard(caf::actor_system& system, caf::actor_id actor, gate::own_actors::kind what) {
  auto* network = network::network_of(system);
  return network != nullptr ? network->peers().own->add(actor, what) : gate::own_actors::hold();
}

}  // namespace troupe::services
