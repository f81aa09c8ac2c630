// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/node_services.hpp>

#include <chrono>
#include <exception>
#include <utility>

#include <troupe/actors/future.hpp>
#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/actors/nodes/serve_request.hpp>
#include <troupe/devices/landing.hpp>

namespace troupe::nodes {

void published_actors::add(std::string name, caf::strong_actor_ptr actor) {
  checked_lock lock(mutex_);
  all_.insert_or_assign(std::move(name), std::move(actor));
}

caf::strong_actor_ptr published_actors::find(const std::string& name) const {
  checked_lock lock(mutex_);
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : found->second;
}

std::vector<caf::strong_actor_ptr> published_actors::stop() {
  checked_lock lock(mutex_);
  std::vector<caf::strong_actor_ptr> result;
  for (auto& [name, actor] : std::exchange(all_, {})) result.push_back(std::move(actor));
  return result;
}

void peer_news_handler::set(handler notify) {
  checked_lock lock(mutex_);
  notify_ = std::move(notify);
}

void peer_news_handler::tell(const std::string& peer, const std::string& reason) const {
  handler notify;
  {
    checked_lock lock(mutex_);
    notify = notify_;
  }
  if (!notify) return;
  const detail::continuation_scope no_waiting;
  try {
    notify(peer, reason);
  } catch (const std::exception& problem) {
    log_.error("nodes", [&] { return std::string("the handler of ") + name_ + " threw: " + problem.what(); });
  }
}

node_services::node_services(node* handle, settings with, std::function<void()> tidy)
    : options(std::move(with)),
      data(options.data_dir),
      log(options.name, options.log_level, options.log_file, options.log_format),
      self(options),
      maps(options.device_maps, self.as_member().devices, directory),
      times(std::chrono::nanoseconds(options.short_work).count()),
      gradient_credits(options.send_limit),
      garbage(std::move(tidy), network, actors, times, deadlines, running),
      objects(self.id(), self.name()),
      workers({handle, *this,
               [this](const request& what, call_arguments& arguments) { return serve_request(*this, what, arguments); }}) {}

void live_on(node_services& services, caf::actor_system& system, network::shared_multiplexer* multiplexer,
             arriving_tensors* arriving) {
  auto& network = services.network;
  services.actors.system = &system;
  network.arriving = arriving;
  network.multiplexer = multiplexer;
  if (multiplexer != nullptr) network.peers = multiplexer->peers();
  services.departures.emplace(
    system, [own = network.peers.own](caf::actor_id courier) { return own->add(courier, gate::own_actors::kind::inner); });
  if (arriving != nullptr) arriving->use_memory_for_devices(devices::landing::make);
  if (multiplexer == nullptr) return;
  multiplexer->set_idle_work(services.garbage.tidy());
  if (const auto& proof = multiplexer->gate().proof())
    multiplexer->peers().introduce_self(proof->own(), services.self.id(), system.node());
}

}  // namespace troupe::nodes
