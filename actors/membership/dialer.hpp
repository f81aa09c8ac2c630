// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <caf/actor_control_block.hpp>
#include <caf/fwd.hpp>
#include <caf/io/system_messages.hpp>
#include <caf/node_id.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

namespace troupe::membership {

/// Connects to the node at host:port with CAF's middleman; another program may listen there. The middleman alone does not serve for an
/// address that a person typed: it blocks while it connects and trusts any answer. If a program accepts the connection and stays
/// silent, the middleman waits for ever and keeps the actor system from ending.
///   DI-1  an answer comes by the deadline: the gateway, or an error. The error comes at once if the system gives no thread to dial with.
///   DI-2  the middleman is asked only after the other side has begun CAF's handshake on a connection made for that.
///   DI-3  many addresses are dialled at once; all attempts end within 20 ms of the dialer's exit (and a name's look-up).
/// Errors: request_timeout, cannot_connect_to_node, unexpected_message for a program that is no CAF node, and, with a text,
/// errc::misuse for a host name that has no address, errc::unknown_peer if it could not be looked up now, errc::function_failed
/// if the system gives no thread.
using dialer_actor =
  caf::typed_actor<caf::replies_to<caf::connect_atom, std::string, std::uint16_t, std::int64_t>  // host, port, deadline in ns
                   ::with<caf::node_id, caf::strong_actor_ptr, std::set<std::string>>>;

/// Spawns the dialer on the scheduler; every attempt has a thread while it lasts.
dialer_actor spawn_dialer(caf::actor_system& system);

}  // namespace troupe::membership
