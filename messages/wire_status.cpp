// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/inspect_test.cpp, tests/messages/hostile_test.cpp
#include <troupe/messages/wire.hpp>
#include <troupe/messages/wire_parts.hpp>

namespace troupe {

using namespace wire_parts;

namespace {

void put_peer(wire::NodeStatus& to, const peer_status& x) {
  to.add_peer_names(x.who.name);
  to.add_peer_ids(x.who.id.value);
  to.add_peer_hosts(x.who.host);
  to.add_peer_ports(x.who.port);
  to.add_peer_up(x.up);
  to.add_peer_contexts(x.contexts);
  to.add_messages_sent(x.messages_sent);
  to.add_messages_received(x.messages_received);
  to.add_bytes_sent(x.bytes_sent);
  to.add_bytes_received(x.bytes_received);
  to.add_bytes_read(x.bytes_read);
  to.add_peer_gone(x.gone);
  to.add_peer_since_ns(x.since_ns);
  to.add_peer_transports(x.transport);
  to.add_peer_reasons(x.reason);
  to.add_plain_bytes_sent(x.plain_bytes_sent);
  to.add_plain_bytes_received(x.plain_bytes_received);
}

/// Whether a list that older nodes do not send has an entry for each peer, or none at all.
bool all_or_none(int size, int peers) { return size == peers || size == 0; }

bool has_all_of(const wire::NodeStatus& from, int peers) {
  return from.peer_ids_size() == peers && from.peer_hosts_size() == peers && from.peer_ports_size() == peers &&
         from.peer_up_size() == peers && from.peer_contexts_size() == peers && from.messages_sent_size() == peers &&
         from.messages_received_size() == peers && from.bytes_sent_size() == peers && from.bytes_received_size() == peers &&
         all_or_none(from.bytes_read_size(), peers) && all_or_none(from.peer_gone_size(), peers) &&
         all_or_none(from.peer_since_ns_size(), peers) && all_or_none(from.peer_transports_size(), peers) &&
         all_or_none(from.peer_reasons_size(), peers) && all_or_none(from.plain_bytes_sent_size(), peers) &&
         all_or_none(from.plain_bytes_received_size(), peers);
}

complaint parse_peer(const wire::NodeStatus& from, int i, peer_status& x) {
  if (from.peer_ports(i) > std::numeric_limits<std::uint16_t>::max()) return "a port is above 65535";
  x.who = {from.peer_names(i), {from.peer_ids(i)}, from.peer_hosts(i), static_cast<std::uint16_t>(from.peer_ports(i)), {}};
  x.up = from.peer_up(i);
  x.contexts = from.peer_contexts(i);
  x.messages_sent = from.messages_sent(i);
  x.messages_received = from.messages_received(i);
  x.bytes_sent = from.bytes_sent(i);
  x.bytes_received = from.bytes_received(i);
  x.bytes_read = from.bytes_read_size() == 0 ? 0 : from.bytes_read(i);
  if (from.peer_gone_size() != 0) x.gone = from.peer_gone(i);
  if (from.peer_since_ns_size() != 0) x.since_ns = from.peer_since_ns(i);
  if (from.peer_transports_size() != 0) x.transport = from.peer_transports(i);
  if (from.peer_reasons_size() != 0) x.reason = from.peer_reasons(i);
  // Older nodes compress nothing.
  x.plain_bytes_sent = from.plain_bytes_sent_size() == 0 ? x.bytes_sent : from.plain_bytes_sent(i);
  x.plain_bytes_received = from.plain_bytes_received_size() == 0 ? x.bytes_received : from.plain_bytes_received(i);
  return nullptr;
}

}  // namespace

void to_wire(const node_status& x, wire::NodeStatus& to) {
  put_address(*to.mutable_self(), x.self);
  to.set_uptime_ns(x.uptime_ns);
  to.set_contexts(x.contexts);
  to.set_contexts_opened(x.contexts_opened);
  to.set_passes_running(x.passes_running);
  to.set_passes_completed(x.passes_completed);
  to.set_passes_failed(x.passes_failed);
  to.set_pass_parts(x.pass_parts);
  to.set_calls_made(x.calls_made);
  to.set_calls_waiting(x.calls_waiting);
  to.set_calls_failed(x.calls_failed);
  to.set_calls_run(x.calls_run);
  to.set_calls_running(x.calls_running);
  to.set_calls_queued(x.calls_queued);
  to.set_functions_run(x.functions_run);
  to.set_objects(x.objects);
  for (const peer_status& each : x.peers) put_peer(to, each);
  to.set_version(x.version);
  to.set_resident_bytes(x.resident_bytes);
  to.set_members_up(x.members_up);
  to.set_connections_refused(x.connections_refused);
  to.set_requests_refused(x.requests_refused);
  for (const device_map_status& each : x.maps) {
    to.add_map_peers(each.peer);
    to.add_map_entries(each.entries);
    to.add_map_problems(each.problem);
  }
}

complaint from_wire(const wire::NodeStatus& from, node_status& x) {
  if (complaint bad = parse_address(from.self(), x.self)) return bad;
  x.uptime_ns = from.uptime_ns();
  x.contexts = from.contexts();
  x.contexts_opened = from.contexts_opened();
  x.passes_running = from.passes_running();
  x.passes_completed = from.passes_completed();
  x.passes_failed = from.passes_failed();
  x.pass_parts = from.pass_parts();
  x.calls_made = from.calls_made();
  x.calls_waiting = from.calls_waiting();
  x.calls_failed = from.calls_failed();
  x.calls_run = from.calls_run();
  x.calls_running = from.calls_running();
  x.calls_queued = from.calls_queued();
  x.functions_run = from.functions_run();
  x.objects = from.objects();
  x.version = from.version();
  x.resident_bytes = from.resident_bytes();
  x.members_up = from.members_up();
  x.connections_refused = from.connections_refused();
  x.requests_refused = from.requests_refused();
  const int maps = from.map_peers_size();
  if (from.map_entries_size() != maps || from.map_problems_size() != maps)
    return "a list of device maps has not as many of all entries";
  x.maps.clear();
  for (int i = 0; i < maps; ++i) x.maps.push_back({from.map_peers(i), from.map_entries(i), from.map_problems(i)});
  const int peers = from.peer_names_size();
  if (!has_all_of(from, peers)) return "a list of peers has not as many of all entries";
  x.peers.clear();
  x.peers.resize(static_cast<std::size_t>(peers));
  for (int i = 0; i < peers; ++i)
    if (complaint bad = parse_peer(from, i, x.peers[static_cast<std::size_t>(i)])) return bad;
  return nullptr;
}

}  // namespace troupe
