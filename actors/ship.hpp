// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/duration.hpp>
#include <caf/error.hpp>
#include <caf/send.hpp>

#include <troupe/actors/company.hpp>
#include <troupe/actors/outgoing_pieces.hpp>
#include <troupe/actors/peer_actor.hpp>

/// How a `peer` actor sends large tensors ahead of their messages (PE-6): its outgoing_pieces decide what, here it leaves.
namespace troupe {

/// Whether a message with these tensors to that node is to leave after them.
inline bool goes_ahead(company& here, node_id to, const std::vector<at::Tensor>& tensors) {
  return here.networked() && to != here.id() && outgoing_pieces::any_large(tensors) && here.directory().face(to);
}

/// Sends what may leave for that node now, and goes on whenever it has taken a piece.
template <class Self>
void send_pieces(Self self, node_id to) {
  auto& leaving = self->state.leaving;
  const auto found = leaving.find(to);
  const auto face = self->state.here->directory().face(to);
  if (found == leaving.end() || !face) return;
  while (auto step = found->second.next()) {
    if (auto* send = std::get_if<outgoing_pieces::send_message>(&*step)) {
      (*send)();
      continue;
    }
    auto taken = [self, to] {
      if (const auto at = self->state.leaving.find(to); at != self->state.leaving.end()) at->second.taken();
      send_pieces(self, to);
    };
    // Of a piece that was refused nothing follows here: who waits for the message is told when that can't be read.
    self->request(caf::actor_cast<peer_actor>(face), caf::infinite, std::move(std::get<tensor_piece>(*step)))
      .then(taken, [taken](const caf::error&) { taken(); });
  }
  if (found->second.empty()) leaving.erase(found);
}

/// Sends the large tensors of a message, then calls `send`. Pre: goes_ahead.
template <class Self>
void ship(Self self, node_id to, const std::vector<at::Tensor>& tensors, sent_ahead& ahead,
          outgoing_pieces::send_message send) {
  ahead.from = self->state.here->id();
  self->state.leaving[to].add(tensors, ahead, self->state.last_transfer, std::move(send));
  send_pieces(self, to);
}

/// The message that these were for does not leave any more (PE-7).
inline void call_off(company& here, node_id to, const sent_ahead& ahead) {
  const auto face = here.directory().face(to);
  if (!face) return;
  for (const auto number : ahead.transfers)
    if (number != 0) caf::anon_send(caf::actor_cast<peer_actor>(face), tensor_piece{here.id(), number, 0, 0, {}});
}

}  // namespace troupe
