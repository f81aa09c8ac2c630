// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/duration.hpp>
#include <caf/error.hpp>
#include <caf/send.hpp>

#include <troupe/actors/contracts/gateway.hpp>
#include <troupe/actors/services/node_services.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/transfers/outgoing_pieces.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/foreign_memory.hpp>

/// How a `gateway` actor sends large tensors ahead of their messages (GW-6). outgoing_pieces decides what leaves; these
/// functions send it.
namespace troupe::transfers {

/// Whether some of these tensors are large and have to leave ahead of their message.
inline bool goes_ahead(services::node_services& here, node_id to, const std::vector<at::Tensor>& tensors) {
  return here.networked() && to != here.id() && outgoing_pieces::any_large(tensors) && here.directory().gateway(to);
}

/// Sends a message to which the node answers when it has taken the message, and calls `taken` then. No effect of the answer if the
/// node goes down before.
template <class Self, class Message, class F>
void request_taken(Self self, node_id to, const contracts::gateway_actor& gateway, Message message, F taken) {
  const auto request = self->request(gateway, caf::infinite, std::move(message));
  const auto id = request.id();
  self->state.asked.add(to, id);
  auto answered = [self, to, id, taken = std::move(taken)] {
    if (self->state.asked.answered(to, id)) taken();
  };
  auto failed = [answered](const caf::error&) { answered(); };
  if constexpr (std::same_as<Message, tensor_piece>)
    request.then([answered](std::int64_t) { answered(); }, failed);
  else
    request.then(answered, failed);
}

template <class Self>
void send_pieces(Self self, node_id to);

/// Sends a piece; the receiver answers when it has the elements, or with an error. After either answer the next piece may leave.
/// A refused piece is not sent again. The receiver then can't read the message to which the tensor belongs: a call fails, and a
/// pass fails at its deadline at the latest.
template <class Self>
void send_piece(Self self, node_id to, const contracts::gateway_actor& gateway, tensor_piece piece) {
  const auto bytes = static_cast<std::uint64_t>(piece.elements.nbytes());
  const auto request = self->request(gateway, caf::infinite, std::move(piece));
  self->state.asked.add(to, request.id());
  const auto under_way = self->state.leaving.at(to).under_way();
  const auto measured = self->state.windows[to].leaves(bytes, under_way, support::steady_ns());
  auto taken = [self, to, measured, id = request.id()](std::optional<std::int64_t> taken_ns) {
    if (!self->state.asked.answered(to, id)) return;  // the node went down meanwhile
    if (const auto at = self->state.windows.find(to); at != self->state.windows.end())
      at->second.answered(measured, support::steady_ns(), taken_ns);
    if (const auto at = self->state.leaving.find(to); at != self->state.leaving.end()) at->second.piece_taken(measured.bytes);
    send_pieces(self, to);
  };
  request.then([taken](std::int64_t taken_ns) { taken(taken_ns); }, [taken](const caf::error&) { taken(std::nullopt); });
}

template <class Self>
void send_offer(Self self, node_id to, const contracts::gateway_actor& gateway, tensor_offer offer) {
  const auto number = offer.transfer;
  self->state.direct.complete(offer, to);
  const auto request = self->request(gateway, caf::infinite, offer);
  const auto id = request.id();
  self->state.asked.add(to, id);
  auto taken = [self, to, number, id] {
    if (!self->state.asked.answered(to, id)) return;
    if (const auto at = self->state.leaving.find(to); at != self->state.leaving.end()) at->second.taken(number);
    send_pieces(self, to);
  };
  auto refused = [self, to, number, id](const caf::error& why) {
    if (!self->state.asked.answered(to, id)) return;
    if (why == errc::refused) self->state.direct.refused(to);
    if (const auto at = self->state.leaving.find(to); at != self->state.leaving.end()) at->second.refused(number);
    send_pieces(self, to);
  };
  request.then(taken, refused);
}

/// Sends all that may leave for the node now. Called again whenever the node has taken or refused a piece.
template <class Self>
void send_pieces(Self self, node_id to) {
  auto& leaving = self->state.leaving;
  const auto found = leaving.find(to);
  const auto gateway = self->state.here->directory().gateway(to);
  if (found == leaving.end() || !gateway) return;
  auto& window = self->state.windows[to];
  // A piece that leaves may shrink the window.
  while (auto step = found->second.next(self->state.direct.reads_here(to), window.size(), window.piece_bytes()))
    if (auto* send = std::get_if<outgoing_pieces::send_message>(&*step))
      (*send)();
    else if (auto* offer = std::get_if<tensor_offer>(&*step))
      send_offer(self, to, gateway, *offer);
    else
      send_piece(self, to, gateway, std::move(std::get<tensor_piece>(*step)));
  if (found->second.empty()) leaving.erase(found);
}

/// Asks the node for a mark, once, if the node listens on loopback and settings::direct_memory is on. Large tensors are offered to
/// a node that gave a mark, until the node refuses an offer because it can't read this process's memory. Without a mark, tensors
/// leave in pieces. Pre: the node is up.
template <class Self>
void ask_for_mark(Self self, node_id to) {
  auto& here = *self->state.here;
  if (!here.options().direct_memory || !self->state.direct.ask(to) || !is_loopback(here.directory().host(to))) return;
  const auto gateway = here.directory().gateway(to);
  const auto request = self->request(gateway, here.options().deadline, request_mark{here.id(), this_process()});
  const auto id = request.id();
  self->state.asked.add(to, id);
  request.then(
    [self, to, id](const memory_mark& drawn) {
      self->state.asked.answered(to, id);
      self->state.direct.keep(to, drawn);
    },
    [self, to, id](const caf::error&) { self->state.asked.answered(to, id); });
}

/// Sends the large tensors of a message, then calls `send`. Pre: goes_ahead().
template <class Self>
void ship(Self self, node_id to, const std::vector<at::Tensor>& tensors, sent_ahead& ahead,
          outgoing_pieces::send_message send) {
  ahead.from = self->state.here->id();
  ask_for_mark(self, to);
  self->state.leaving[to].add(tensors, ahead, self->state.last_transfer, std::move(send));
  send_pieces(self, to);
}

/// Makes the receiver drop the pieces of a message that will not leave (GW-7).
inline void call_off(services::node_services& here, node_id to, const sent_ahead& ahead) {
  const auto gateway = here.directory().gateway(to);
  if (!gateway) return;
  for (const auto number : ahead.transfers)
    if (number != 0) caf::anon_send(gateway, tensor_piece{here.id(), number, 0, 0, {}});
}

}  // namespace troupe::transfers
