// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/cut_connection.hpp>

#include <sys/socket.h>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/node_id.hpp>

namespace troupe {

/// CAF's broker would first send all that waits. The number of a connection's handle is that of its socket, which lives as long as the
/// broker knows the connection.
void cut_connection(caf::actor_system& system, const caf::node_id& to) {
  if (!system.has_middleman()) return;
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  auto* basp = static_cast<caf::io::basp_broker*>(caf::actor_cast<caf::abstract_actor*>(broker));
  if (const auto found = basp->instance.tbl().lookup_direct(to)) ::shutdown(static_cast<int>(found->id()), SHUT_RDWR);
}

}  // namespace troupe
