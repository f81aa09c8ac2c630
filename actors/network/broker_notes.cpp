// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/broker_notes.hpp>

#include <mutex>

#include <caf/exit_reason.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/proxy_registry.hpp>
#include <caf/send.hpp>

namespace troupe::network {

namespace {

/// Reads private members: CAF has no function that returns the nodes for whose actors CAF has proxies. C++ lets an explicit
/// instantiation name private members.
template <auto Proxies, auto Mutex>
struct known_nodes {
  static std::vector<caf::node_id> beyond(std::size_t most, caf::proxy_registry& of) {
    std::lock_guard lock(of.*Mutex);
    std::vector<caf::node_id> result;
    if ((of.*Proxies).size() <= most) return result;
    for (const auto& [node, actors] : of.*Proxies) result.push_back(node);
    return result;
  }
  /// All nodes for whose actors CAF has proxies, if there are more than `most` such nodes; otherwise none.
  friend std::vector<caf::node_id> nodes_beyond(std::size_t most, caf::proxy_registry& of) { return beyond(most, of); }
};
std::vector<caf::node_id> nodes_beyond(std::size_t most, caf::proxy_registry& of);
template struct known_nodes<&caf::proxy_registry::proxies_, &caf::proxy_registry::mtx_>;

}  // namespace

std::string broker_notes::read(caf::io::basp_broker& broker, caf::io::connection_handle by, std::size_t owed) {
  auto& routes = broker.instance.tbl();
  std::vector<stranger> strangers;
  {
    std::lock_guard lock(routes.mtx_);
    for (const auto& [node, ways] : routes.indirect_) strangers.emplace_back(node, 0);
    routes.indirect_.clear();
  }
  for (auto& [node, actors] : strangers) actors = broker.proxies().count_proxies(node);
  forget_strangers(broker);
  end_askers(broker);
  const auto node = routes.lookup_direct(by);
  return count(strangers, node ? broker.proxies().count_proxies(node) : 0, owed);
}

void broker_notes::forget_strangers(caf::io::basp_broker& broker) {
  auto& routes = broker.instance.tbl();
  const auto most = routes.direct_by_nid_.size() + most_strangers;
  for (const auto& each : nodes_beyond(most, broker.proxies()))
    if (!routes.lookup_direct(each)) broker.proxies().erase(each);
}

void broker_notes::end_askers(caf::io::basp_broker& broker) {
  for (const auto& [node, asker] : broker.spawn_servers) caf::anon_send_exit(asker, caf::exit_reason::kill);
  broker.spawn_servers.clear();
}

std::string broker_notes::count(const std::vector<stranger>& strangers, std::size_t actors, std::size_t owed) {
  for (const auto& [node, its_actors] : strangers) {
    auto& before = strangers_[node];
    of_strangers_ = of_strangers_ - before + its_actors;
    before = its_actors;
  }
  owed_ += owed;
  if (strangers_.size() > most_strangers)
    return "the names of more than " + std::to_string(most_strangers) + " nodes that are not connected with this one";
  if (owed_ > most_owed) return "questions whose answers it does not read";
  if (of_strangers_ > most_actors)
    return "messages that name more than " + std::to_string(most_actors) +
           " actors of nodes that are not connected with this one";
  if (actors > most_actors) return "messages of more than " + std::to_string(most_actors) + " actors";
  return {};
}

}  // namespace troupe::network
