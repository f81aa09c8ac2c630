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

/// Connects to the node at host:port by CAF's middleman. Reports an error in time, whatever program listens at the address. The
/// middleman alone is not enough for an address that a person typed, because it blocks while it connects and trusts any answer.
/// If a program accepts the connection and sends nothing, the middleman waits for ever and keeps the actor system from ending.
///   DI-1  an answer comes by the deadline: the gateway, or an error. If the system gives no thread, the error comes at once.
///   DI-2  the middleman is asked only after the other program has begun CAF's handshake. With troupe's network the middleman
///         gets the connection of this handshake. CAF's own network makes another connection, to the address that answered,
///         because a host name may have other addresses where nobody listens.
///   DI-3  many addresses are dialled at once, by one thread of the process (`network::dial_thread`). When the dialer exits,
///         all its attempts end. No thread of an attempt keeps the actor system from ending, even if the thread looks a host
///         name up.
///   DI-4  with troupe's network, a connection of the middleman ends if nothing has come on it by the deadline. Otherwise the
///         middleman, and all later requests for the address, would wait for ever.
/// Errors of CAF: request_timeout; cannot_connect_to_node if no program listens; unexpected_message if the program that listens
/// is no CAF node; disconnect_during_handshake if this program ends the connection (with a text, if there is more to say).
/// Errors of troupe: errc::misuse for a host name without an address; errc::unknown_peer if the name could not be looked up
/// now, or no way leads to the host; errc::function_failed if the system gives no thread.
using dialer_actor =
  caf::typed_actor<caf::replies_to<caf::connect_atom, std::string, std::uint16_t, std::int64_t>  // host, port, deadline in ns
                   ::with<caf::node_id, caf::strong_actor_ptr, std::set<std::string>>>;

/// Spawns the dialer on the scheduler.
dialer_actor spawn_dialer(caf::actor_system& system);

}  // namespace troupe::membership
