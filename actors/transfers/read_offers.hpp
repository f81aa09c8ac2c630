// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include <caf/error.hpp>
#include <caf/result.hpp>
#include <caf/unit.hpp>

#include <troupe/actors/membership/node_connection.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/transfers/memory_reader.hpp>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/foreign_memory.hpp>

/// How a `gateway` actor receives large tensors (ship.hpp is the sender): pieces that come as messages, and pieces that the
/// actor reads out of the memory of the process that offers them (GW-8).
namespace troupe::transfers {

/// To be called when a piece has come. The elements are in arriving_tensors already, because reading the message put them
/// there. Returns the time by the clock of this process, in nanoseconds (see piece_window).
template <class Self>
std::int64_t piece_came(Self self, const tensor_piece& piece) {
  auto& here = *self->state.here;
  if (here.directory().is_down(piece.from)) here.arriving().drop(piece.from);
  return support::steady_ns();
}

/// Why this node may not read the memory of this process of node `from`; no error if this node may. The kernel says which process is at
/// the other end of the connection, and that it is of the same user (LD-1): what the node says would not do.
inline caf::error why_not_read(services::node_services& here, node_id from, std::uint64_t process) {
  const auto refused = [&](const char* why) {
    return make_error(errc::refused, "node '" + here.name() + "' reads no memory of node " + to_string(from) + ": " + why);
  };
  if (!here.networked() || !here.options().direct_memory) return refused("direct memory is turned off there");
  const auto gateway = here.directory().gateway(from);
  if (!gateway) return refused("that is not up here");
  if (!is_loopback(here.directory().host(from))) return refused("that does not listen on loopback");
  const auto proven = membership::process_beyond(here.system(), gateway.node());
  if (!proven) return refused("the connection to it goes on in no shared memory");
  if (*proven != process) return refused("it says that it is another process than the one at the other end of its connection");
  if (process == this_process()) return refused("it is of the same process");
  return {};
}

template <class Self>
caf::result<memory_mark> draw_mark(Self self, const request_mark& from) {
  auto& here = *self->state.here;
  if (auto why = why_not_read(here, from.from, from.process)) return why;
  const auto* drawn = self->state.direct.draw(from.from, from.process);
  if (drawn == nullptr) return make_error(errc::refused, "no mark, because the system gives no random numbers");
  return *drawn;
}

/// Gives the offer to the memory reader. offer_read() answers the offer later.
template <class Self>
caf::result<void> read_offer(Self self, const tensor_offer& offer) {
  auto& here = *self->state.here;
  const auto* given = self->state.direct.drawn(offer.from);
  if (given == nullptr || given->process != offer.process) {
    here.arriving().add({offer.from, offer.transfer, 0, 0, {}}, {});  // drops what has come of the transfer
    return make_error(errc::refused, "an offer from node " + to_string(offer.from) + " of the memory of process " +
                                       std::to_string(offer.process) + ", which has no mark");
  }
  auto job = std::make_shared<contracts::incoming_offer>(contracts::incoming_offer{offer, given->mark, {}, {}});
  auto promise = job->promise = self->make_response_promise();
  try {
    if (!self->state.parts->memory_reader.read(std::move(job)))
      promise.deliver(make_error(errc::stopping, "node '" + here.name() + "' is stopping"));
  } catch (const std::system_error& none) {
    promise.deliver(
      make_error(errc::refused, "node '" + here.name() + "' can't start the thread that reads memory: " + none.what()));
  }
  return promise;
}

/// Answers an offer that the memory reader returned.
template <class Self>
void offer_read(Self self, contracts::incoming_offer& job) {
  auto& here = *self->state.here;
  const auto from = job.offer.from;
  self->state.parts->memory_reader.was_read();
  if (here.directory().is_down(from)) here.arriving().drop(from);
  if (job.failure) {
    job.promise.deliver(make_error(job.failure->code(), job.failure->what()));
    return;
  }
  here.directory().read(from, job.offer.bytes);
  job.promise.deliver(caf::unit);
}

}  // namespace troupe::transfers
