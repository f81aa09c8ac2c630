// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/inspect_test.cpp, tests/messages/hostile_test.cpp
#include <functional>

#include <troupe/messages/wire.hpp>

namespace troupe::wire_fields {

namespace {

using h = wire::NodeStatus;

constexpr bool may_lack = true;  // older nodes do not send the list

/// Writes or reads lists of a header that have one entry for each struct in `xs`.
template <class Archive, class Structs>
struct lists_of {
  Archive& a;
  Structs& xs;
  int entries = 0;
  complaint why = nullptr;  // the complaint about a list of another length; null: the lengths were checked

  template <class List>
  void operator()(const auto& member, const List& (h::*list)() const, List* (h::*mutable_list)(), bool may_be_empty = false) {
    if constexpr (Archive::reads) {
      const List& from = (a.header.*list)();
      if (why != nullptr && from.size() != entries && !(may_be_empty && from.empty())) a.refuse(why);
      if (why != nullptr || from.empty()) return;
      for (int i = 0; i < entries; ++i) a.refuse(parse_value(from[i], std::invoke(member, xs[static_cast<std::size_t>(i)])));
    } else {
      for (const auto& x : xs) *(a.header.*mutable_list)()->Add() = value_of<typename List::value_type>(std::invoke(member, x));
    }
  }
};

/// Writes or reads structs by `lists`. When reading, allocates memory only if all lists have the right length.
template <class A>
void rows(A& a, auto& xs, int entries, complaint why, const auto& lists) {
  lists_of<A, std::remove_reference_t<decltype(xs)>> each{a, xs, entries, A::reads ? why : nullptr};
  lists(each);
  if constexpr (A::reads) {
    xs.clear();
    if (a.bad != nullptr) return;
    xs.resize(static_cast<std::size_t>(entries));
    each.why = nullptr;
    lists(each);
  }
}

void lists_of_peers(auto& each) {
  const auto who = [](auto of) {
    return [of](auto& peer) -> auto& { return peer.who.*of; };
  };
  each(who(&member::name), &h::peer_names, &h::mutable_peer_names);
  each(who(&member::id), &h::peer_ids, &h::mutable_peer_ids);
  each(who(&member::host), &h::peer_hosts, &h::mutable_peer_hosts);
  each(who(&member::port), &h::peer_ports, &h::mutable_peer_ports);
  each(&peer_status::up, &h::peer_up, &h::mutable_peer_up);
  each(&peer_status::contexts, &h::peer_contexts, &h::mutable_peer_contexts);
  each(&peer_status::messages_sent, &h::messages_sent, &h::mutable_messages_sent);
  each(&peer_status::messages_received, &h::messages_received, &h::mutable_messages_received);
  each(&peer_status::bytes_sent, &h::bytes_sent, &h::mutable_bytes_sent);
  each(&peer_status::bytes_received, &h::bytes_received, &h::mutable_bytes_received);
  each(&peer_status::bytes_read, &h::bytes_read, &h::mutable_bytes_read, may_lack);
  each(&peer_status::gone, &h::peer_gone, &h::mutable_peer_gone, may_lack);
  each(&peer_status::since_ns, &h::peer_since_ns, &h::mutable_peer_since_ns, may_lack);
  each(&peer_status::transport, &h::peer_transports, &h::mutable_peer_transports, may_lack);
  each(&peer_status::reason, &h::peer_reasons, &h::mutable_peer_reasons, may_lack);
  each(&peer_status::plain_bytes_sent, &h::plain_bytes_sent, &h::mutable_plain_bytes_sent, may_lack);
  each(&peer_status::plain_bytes_received, &h::plain_bytes_received, &h::mutable_plain_bytes_received, may_lack);
}

void lists_of_maps(auto& each) {
  each(&device_map_status::peer, &h::map_peers, &h::mutable_map_peers);
  each(&device_map_status::entries, &h::map_entries, &h::mutable_map_entries);
  each(&device_map_status::problem, &h::map_problems, &h::mutable_map_problems);
}

template <class A>
void all_fields(A& a, auto& x) {
  a(x.self, &h::self, &h::mutable_self);
  a(x.uptime_ns, &h::uptime_ns, &h::set_uptime_ns);
  a(x.contexts, &h::contexts, &h::set_contexts);
  a(x.contexts_opened, &h::contexts_opened, &h::set_contexts_opened);
  a(x.passes_running, &h::passes_running, &h::set_passes_running);
  a(x.passes_completed, &h::passes_completed, &h::set_passes_completed);
  a(x.passes_failed, &h::passes_failed, &h::set_passes_failed);
  a(x.graph_tasks, &h::graph_tasks, &h::set_graph_tasks);
  a(x.calls_made, &h::calls_made, &h::set_calls_made);
  a(x.calls_waiting, &h::calls_waiting, &h::set_calls_waiting);
  a(x.calls_failed, &h::calls_failed, &h::set_calls_failed);
  a(x.calls_run, &h::calls_run, &h::set_calls_run);
  a(x.calls_running, &h::calls_running, &h::set_calls_running);
  a(x.calls_queued, &h::calls_queued, &h::set_calls_queued);
  a(x.functions_run, &h::functions_run, &h::set_functions_run);
  a(x.objects, &h::objects, &h::set_objects);
  a(x.version, &h::version, &h::mutable_version);
  a(x.resident_bytes, &h::resident_bytes, &h::set_resident_bytes);
  a(x.members_up, &h::members_up, &h::set_members_up);
  a(x.connections_refused, &h::connections_refused, &h::set_connections_refused);
  a(x.requests_refused, &h::requests_refused, &h::set_requests_refused);
  rows(a, x.maps, a.header.map_peers_size(), "a list of device maps has not as many of all entries",
       [](auto& each) { lists_of_maps(each); });
  rows(a, x.peers, a.header.peer_names_size(), "a list of peers has not as many of all entries",
       [](auto& each) { lists_of_peers(each); });
  if constexpr (A::reads)
    for (peer_status& peer : x.peers) {  // older nodes compress nothing
      if (a.header.plain_bytes_sent().empty()) peer.plain_bytes_sent = peer.bytes_sent;
      if (a.header.plain_bytes_received().empty()) peer.plain_bytes_received = peer.bytes_received;
    }
}

}  // namespace

void fields(writer<wire::NodeStatus>& a, const node_status& x) { all_fields(a, x); }
void fields(reader<wire::NodeStatus>& a, node_status& x) { all_fields(a, x); }

}  // namespace troupe::wire_fields
