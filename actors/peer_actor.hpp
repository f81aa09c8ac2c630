// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include <troupe/actors/call_pool.hpp>
#include <troupe/actors/direct_memory.hpp>
#include <troupe/actors/late_calls.hpp>
#include <troupe/actors/node_parts.hpp>
#include <troupe/actors/open_requests.hpp>
#include <troupe/actors/outgoing_pieces.hpp>
#include <troupe/actors/peer_contract.hpp>
#include <troupe/actors/released_contexts.hpp>

namespace troupe {

struct peer_state {
  static inline const char* name = "peer";

  peer_state() : pool(1) {}
  ~peer_state();

  node_parts* parts = nullptr;
  node_services* here = nullptr;  // of them
  membership_actor membership;
  std::unordered_map<context_id, open_context> contexts;
  released_contexts released{4096};
  std::unordered_map<context_id, std::unordered_set<outgoing_call_ptr>> calls;  // not answered yet
  call_pool<call_worker_actor, incoming_call_ptr> pool;
  late_calls late;
  std::unordered_map<node_id, outgoing_pieces> leaving;
  open_requests asked;  // of pieces, offers and marks
  direct_memory direct;
  std::uint64_t last_transfer = 0;
};

template <class Self>
peer_actor::behavior_type make_peer(Self self, node_parts* parts);

peer_actor spawn_peer(node_parts& parts);

}  // namespace troupe
