// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/waiting_bytes.hpp>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/node_id.hpp>

#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::network {

caf::actor message_writer(caf::actor_system& system) {
  TROUPE_EXPECT(system.has_middleman());
  return system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
}

std::size_t waiting_bytes(caf::actor_system& system, const caf::node_id& to) {
  auto* const shared = network_of(system);
  if (shared == nullptr) return 0;
  auto* writer = static_cast<caf::io::basp_broker*>(caf::actor_cast<caf::abstract_actor*>(message_writer(system)));
  const auto connection = writer->instance.tbl().lookup_direct(to);
  // The id of CAF's connection handle is the number of the socket.
  return connection ? shared->facts().waiting(static_cast<int>(connection->id())) : 0;
}

}  // namespace troupe::network
