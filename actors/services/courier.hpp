// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/courier_test.cpp
#pragma once

#include <cstdint>
#include <exception>

#include <caf/actor_system.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/services/parcel_line.hpp>
#include <troupe/actors/support/atoms.hpp>

namespace troupe::services {

/// Sends staged tensors when their elements have arrived on the host, so that no other thread has to wait for the device. A
/// courier is an actor with a thread of its own. The thread asks the device's events again and again, and never waits for an
/// event. So the courier can end even if the device never answers.
///   CE-1  parcels are sent in the order in which they came, each exactly once, on the courier's thread.
///   CE-2  if the device has failed, `send` gets the device's error.
///   CE-3  close_atom is answered when all parcels are sent, or at the time that the message names (nanoseconds of the steady
///         clock). The `send` of a parcel that is not ready by then, or that comes later, gets the error too_late()
///         (errc::stopping).
///   CE-4  a courier that waits uses little of a core: it pauses for an eighth of the time that the parcel has waited, and for
///         0.2 ms at most, before it asks the device again.
using courier_actor = caf::typed_actor<caf::reacts_to<parcel_ptr>, caf::reacts_to<support::tick_atom>,
                                       caf::reacts_to<support::close_atom, std::int64_t>>;

/// Spawns a courier. Throws std::system_error if the system gives no thread.
courier_actor spawn_courier(caf::actor_system& system);

/// The error of a parcel that came too late.
std::exception_ptr too_late();

}  // namespace troupe::services
