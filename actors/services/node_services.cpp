// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/node_services.hpp>

#include <chrono>
#include <utility>

#include <troupe/actors/network/shared_multiplexer.hpp>

namespace troupe::services {

node_services::node_services(settings with, std::function<void()> tidy)
    : options(std::move(with)),
      log(options.name, options.log_level, options.log_file, options.log_format),
      self(options),
      maps(options.device_maps, self.as_member().devices, directory),
      times(std::chrono::nanoseconds(options.short_work).count()),
      gradient_credits(options.send_limit),
      garbage(std::move(tidy), network, actors, times, deadlines, running) {}

void node_services::live_on(caf::actor_system& system, network::shared_multiplexer* multiplexer, arriving_tensors* arriving) {
  actors.system = &system;
  network.arriving = arriving;
  network.multiplexer = multiplexer;
  if (multiplexer != nullptr) network.peers = multiplexer->peers();
  departures.emplace(
    system, [own = network.peers.own](caf::actor_id courier) { return own->add(courier, gate::own_actors::kind::inner); });
  if (multiplexer == nullptr) return;
  multiplexer->set_idle_work(garbage.tidy());
  if (const auto& proof = multiplexer->gate().proof())
    multiplexer->peers().introduce_self(proof->own(), self.id(), system.node());
}

}  // namespace troupe::services
