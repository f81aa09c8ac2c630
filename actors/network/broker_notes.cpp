// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/broker_notes.hpp>

#include <mutex>

#include <caf/exit_reason.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/send.hpp>

namespace troupe::network {

std::string broker_notes::read(caf::io::basp_broker& broker, caf::io::connection_handle by, std::size_t owed) {
  auto& routes = broker.instance.tbl();
  std::size_t strangers = 0;
  {
    std::lock_guard lock(routes.mtx_);
    strangers = routes.indirect_.size();
    routes.indirect_.clear();
  }
  if (broker.spawn_servers.size() > routes.direct_by_nid_.size() + most_strangers) forget_strangers(broker);
  const auto node = routes.lookup_direct(by);
  return count(strangers, node ? broker.proxies().count_proxies(node) : 0, owed);
}

void broker_notes::forget_strangers(caf::io::basp_broker& broker) {
  for (auto each = broker.spawn_servers.begin(); each != broker.spawn_servers.end();) {
    if (broker.instance.tbl().lookup_direct(each->first)) {
      ++each;
      continue;
    }
    caf::anon_send_exit(each->second, caf::exit_reason::kill);
    each = broker.spawn_servers.erase(each);
  }
}

std::string broker_notes::count(std::size_t strangers, std::size_t actors, std::size_t owed) {
  strangers_ += strangers;
  owed_ += owed;
  if (strangers_ > most_strangers)
    return "the names of more than " + std::to_string(most_strangers) + " nodes that are not connected with this one";
  if (owed_ > most_owed) return "questions whose answers it does not read";
  if (actors > most_actors) return "messages of more than " + std::to_string(most_actors) + " actors";
  return {};
}

}  // namespace troupe::network
