// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/inspect_test.cpp, tests/messages/hostile_test.cpp
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <troupe/messages/wire_fields.hpp>

/// Conversion between structs and protobuf headers, without the tensors. Only files in messages/ include this header.
namespace troupe::wire_fields {

// Functions for fields that several headers have. All headers use the same names for the parts of an id.

void context(auto& a, is<context_id> auto& x) {
  using h = header_in<decltype(a)>;
  a(x.node, &h::context_node, &h::set_context_node);
  a(x.number, &h::context_number, &h::set_context_number);
}

void message(auto& a, is<message_id> auto& x) {
  using h = header_in<decltype(a)>;
  a(x.node, &h::message_node, &h::set_message_node);
  a(x.number, &h::message_number, &h::set_message_number);
  if (x.number > highest_message_number) a.refuse("the number of a message is above 2^63, and no node counts so far");
}

void pass(auto& a, auto& x) {
  using h = header_in<decltype(a)>;
  context(a, x.context);
  a(x.pass, &h::pass, &h::set_pass);
}

template <class A>
void address(A& a, auto& x) {
  using h = header_in<A>;
  a(x.name, &h::name, &h::mutable_name);
  a(x.id, &h::id, &h::set_id);
  a(x.host, &h::host, &h::mutable_host);
  a(x.port, &h::port, &h::set_port);
  constexpr bool has_formats = requires { a.header.formats(); };
  if constexpr (has_formats) a(x.formats, &h::formats, &h::set_formats);
  if constexpr (has_formats && A::reads) a.refuse(parse_known(a.header.devices(), x.devices));
  if constexpr (has_formats && !A::reads)
    for (const c10::Device& device : x.devices)
      if (const auto number = wire_number(device)) a.header.add_devices(*number);
  if constexpr (!has_formats && A::reads) x.formats = 0, x.devices.clear();
}

void between(auto& a, is<bond> auto& x) {
  using h = header_in<decltype(a)>;
  a(x.partings, &h::partings, &h::set_partings);
  a(x.separations, &h::separations, &h::set_separations);
}

// One function for each header, which writes or reads its fields.

template <template <class> class Archive>
void fields(Archive<wire::Joint>& a, is<autograd_message> auto& x) {
  using h = wire::Joint;
  context(a, x.context);
  message(a, x.message);
  a(x.requires_grad, &h::requires_grad, &h::mutable_requires_grad);
  a(x.devices, &h::devices, &h::mutable_devices);
  a(x.place, &h::place, &h::mutable_place);
  a(x.format, &h::format, &h::set_format);
  a(x.modes.no_grad, &h::no_grad, &h::set_no_grad);
  a(x.modes.inference, &h::inference, &h::set_inference);
  a(x.modes.autocast, &h::autocast, &h::mutable_autocast);
  a(x.detached, &h::detached, &h::set_detached);
}

/// Whether a list in a header has one entry for each tensor of the message, or no entry.
bool one_each(const auto& header, int entries) { return entries == 0 || entries == header.tensors().kinds_size(); }

void joint(auto& a, is<autograd_message> auto& x) {
  using h = header_in<decltype(a)>;
  if (!one_each(a.header, a.header.joint().requires_grad_size()))
    a.refuse("requires_grad has not as many entries as there are tensors");
  if (!one_each(a.header, a.header.joint().devices_size())) a.refuse("devices has not as many entries as there are tensors");
  a(x, &h::joint, &h::mutable_joint);
}

template <template <class> class Archive>
void fields(Archive<wire::Autograd>& a, is<autograd_message> auto& x) {
  joint(a, x);
}

void fields(auto& a, is<hello> auto& x) {
  using h = wire::Hello;
  address(a, x);
  a(x.protocol, &h::protocol, &h::set_protocol);
  a(x.digest, &h::digest, &h::set_digest);
  a(x.incarnation, &h::incarnation, &h::set_incarnation);
  a(x.to, &h::to, &h::set_to);
  a(x.to_name, &h::to_name, &h::mutable_to_name);
  between(a, x.between);
}

void fields(auto& a, is<member> auto& x) { address(a, x); }

void fields(auto& a, is<std::vector<member>> auto& x) { a(x, &wire::Members::members, &wire::Members::mutable_members); }

void fields(auto& a, is<member_news> auto& x) {
  using h = wire::MemberNews;
  address(a, x.who);
  a(x.incarnation, &h::incarnation, &h::set_incarnation);
  a(x.state, &h::state, &h::set_state);
}

void fields(auto& a, is<welcome> auto& x) {
  using h = wire::Welcome;
  a(x.self, &h::self, &h::mutable_self);
  a(x.news, &h::news, &h::mutable_news);
  a(x.incarnation, &h::incarnation, &h::set_incarnation);
  between(a, x.between);
}

void fields(auto& a, is<heartbeat> auto& x) {
  using h = wire::Heartbeat;
  a(x.from, &h::from, &h::set_from);
  a(x.sent_ns, &h::sent_ns, &h::set_sent_ns);
  between(a, x.between);
}

void fields(auto& a, is<heartbeat_seen> auto& x) {
  using h = wire::HeartbeatSeen;
  a(x.from, &h::from, &h::set_from);
  a(x.sent_ns, &h::sent_ns, &h::set_sent_ns);
  a(x.answered_ns, &h::answered_ns, &h::set_answered_ns);
  between(a, x.between);
}

void fields(auto& a, is<farewell> auto& x) {
  using h = wire::Farewell;
  a(x.from, &h::from, &h::set_from);
  a(x.reason, &h::reason, &h::mutable_reason);
}

void fields(auto& a, is<gossip> auto& x) {
  using h = wire::Gossip;
  a(x.from, &h::from, &h::set_from);
  a(x.news, &h::news, &h::mutable_news);
  a(x.introduces, &h::introduces, &h::set_introduces);
}

/// A request that has a header of its own.
template <class T>
concept own_request = requires {
  wire::header_of<std::remove_const_t<T>>(wire::own_requests);
};

template <class A>
void fields(A& a, is<requests::optimizer_change> auto& x) {
  using h = header_in<A>;
  a(x.number, &h::number, &h::set_number);
  a(x.round, &h::round, &h::set_round);
  if constexpr (A::reads) {
    if (a.header.rates_size() != a.header.rate_groups_size()) return a.refuse("a request has not as many rates as groups");
    if (static_cast<std::size_t>(a.header.rates_size()) > max_attributes)
      return a.refuse("a request has more learning rates than any node sends");
    x.rates.clear();
    for (int i = 0; i < a.header.rates_size(); ++i) x.rates[a.header.rate_groups(i)] = a.header.rates(i);
  } else {
    for (const auto& [group, rate] : x.rates) a.header.add_rate_groups(group), a.header.add_rates(rate);
  }
}

void fields(auto& a, is<requests::parameter_group> auto& x) {
  using h = wire::ParameterGroup;
  a(x.number, &h::number, &h::set_number);
  a(x.modules, &h::modules, &h::mutable_modules);
  a(x.options, &h::options, &h::mutable_options);
}

/// Writes or reads any request. A field has the same name in all requests and in their headers.
template <class A>
void fields(A& a, own_request auto& x) {
  using h = header_in<A>;
  if constexpr (requires { x.owner; }) a(x.owner, &h::owner, &h::set_owner);
  if constexpr (requires { x.name; }) a(x.name, &h::name, &h::mutable_name);
  if constexpr (requires { x.type; }) a(x.type, &h::type, &h::mutable_type);
  if constexpr (requires { x.names; }) a(x.names, &h::names, &h::mutable_names);
  if constexpr (requires { x.to; }) a(x.to, &h::to, &h::set_to);
  if constexpr (requires { x.ticket; }) a(x.ticket, &h::ticket, &h::set_ticket);
  if constexpr (requires { x.of; }) a(x.of, &h::of, &h::set_of);
  if constexpr (requires { x.on; }) a(x.on, &h::on, &h::set_on);
  if constexpr (requires { x.change; }) a(x.change, &h::change, &h::set_change);
  if constexpr (requires { x.first_change; }) a(x.first_change, &h::first_change, &h::set_first_change);
  if constexpr (requires { x.context; }) a(x.context, &h::context, &h::set_context);
  if constexpr (requires { x.options; }) a(x.options, &h::options, &h::mutable_options);
  if constexpr (requires { x.groups; }) {
    std::size_t modules = 0;
    for (int i = 0; i < a.header.groups_size(); ++i) {  // before memory is allocated
      if (a.header.groups(i).number() != static_cast<std::uint64_t>(i) + 1)
        a.refuse("the parameter groups of an optimizer are not numbered from 1 on");
      modules += static_cast<std::size_t>(a.header.groups(i).modules_size());
    }
    if (std::max(modules, static_cast<std::size_t>(a.header.groups_size())) > max_attributes)
      a.refuse("an optimizer has more modules or parameter groups than any node sends");
    a(x.groups, &h::groups, &h::mutable_groups);
  }
  if constexpr (requires { x.which; }) fields(a, x.which);
  if constexpr (requires { x.scale; }) a(x.scale, &h::scale, &h::set_scale);
  if constexpr (requires { x.gathered; }) a(x.gathered, &h::gathered, &h::set_gathered);
  if constexpr (requires { x.round; }) a(x.round, &h::round, &h::set_round);
  if constexpr (requires { x.number; }) a(x.number, &h::number, &h::set_number);
  if constexpr (requires { x.give_up; }) a(x.give_up, &h::give_up, &h::set_give_up);
  if constexpr (requires { x.save; }) a(x.save, &h::save, &h::mutable_save);
  if constexpr (requires { x.folder; }) a(x.folder, &h::folder, &h::mutable_folder);
  if constexpr (requires { x.others; }) a(x.others, &h::others, &h::set_others);
  if constexpr (requires { x.offset; }) a(x.offset, &h::offset, &h::set_offset);
  if constexpr (requires { x.size; }) a(x.size, &h::size, &h::set_size);
  if constexpr (requires { x.total; }) a(x.total, &h::total, &h::set_total);
  if constexpr (requires { x.path; }) a(x.path, &h::path, &h::mutable_path);
  if constexpr (requires { x.bytes; }) a(x.bytes, &h::bytes, &h::set_bytes);
  if constexpr (requires { x.sum; }) a(x.sum, &h::sum, &h::set_sum);
  if constexpr (requires { x.sum_kind; }) a(x.sum_kind, &h::sum_kind, &h::mutable_sum_kind);
  if constexpr (requires { x.node; }) a(x.node, &h::node, &h::mutable_node);
  if constexpr (requires { x.spans; }) a(x.spans, &h::spans, &h::mutable_spans);
}

// Defined in wire_requests.cpp.
void ask(writer<wire::CallRequest>& a, const request& x);
void ask(reader<wire::CallRequest>& a, request& x);

void fields(auto& a, is<call_request> auto& x) {
  using h = wire::CallRequest;
  ask(a, x.what);
  a(x.target.node, &h::target_node, &h::set_target_node);
  a(x.target.number, &h::target_number, &h::set_target_number);
  a(x.values, &h::values, &h::mutable_values);
  joint(a, x.payload);
  a(x.deadline_ns, &h::deadline_ns, &h::set_deadline_ns);
  a(x.span, &h::span, &h::set_span);
  a(x.completed, &h::completed, &h::set_completed);
  a(x.failed, &h::failed, &h::mutable_failed);
  a(x.calls, &h::calls, &h::mutable_calls);
  a(x.depth, &h::depth, &h::set_depth);
  if constexpr (requires { a.bad; }) x.from_itself = false;
}

void fields(auto& a, is<call_result> auto& x) {
  using h = wire::CallResult;
  a(x.values, &h::values, &h::mutable_values);
  joint(a, x.payload);
  a(x.participants, &h::participants, &h::mutable_participants);
  a(x.spans, &h::spans, &h::mutable_spans);
  a(x.is_child, &h::is_child, &h::set_is_child);
}

void fields(auto& a, is<weight_share> auto& x) {
  using h = wire::WeightShare;
  a(x.weight, &h::weight, &h::mutable_weight);
  a(x.begun, &h::begun, &h::set_begun);
  a(x.settled, &h::settled, &h::set_settled);
  a.refuse(why_not(x.weight));
}

void fields(auto& a, is<std::vector<std::int64_t>> auto& x) { a(x, &wire::Shape::sizes, &wire::Shape::mutable_sizes); }

void fields(auto& a, is<propagate_gradients> auto& x) {
  using h = wire::PropagateGradients;
  if (!one_each(a.header, a.header.shapes_size())) a.refuse("shapes has not as many entries as there are gradients");
  if (!one_each(a.header, a.header.requires_grad_size()))
    a.refuse("requires_grad has not as many entries as there are gradients");
  if (!one_each(a.header, a.header.unreached_size())) a.refuse("unreached has not as many entries as there are gradients");
  pass(a, x);
  message(a, x.message);
  a(x.carried, &h::carried, &h::mutable_carried);
  a(x.keep_graph, &h::keep_graph, &h::set_keep_graph);
  a(x.create_graph, &h::create_graph, &h::set_create_graph);
  a(x.from, &h::from, &h::mutable_from);
  a(x.joint.node, &h::joint_node, &h::set_joint_node);
  a(x.joint.number, &h::joint_number, &h::set_joint_number);
  a(x.requires_grad, &h::requires_grad, &h::mutable_requires_grad);
  a(x.place, &h::place, &h::mutable_place);
  a(x.shapes, &h::shapes, &h::mutable_shapes);
  a(x.format, &h::format, &h::set_format);
  a(x.answers, &h::answers, &h::set_answers);
  a(x.unreached, &h::unreached, &h::mutable_unreached);
}

template <class A>
void fields(A& a, is<participant_quiet> auto& x) {
  using h = wire::ParticipantQuiet;
  pass(a, x);
  a(x.from, &h::from, &h::set_from);
  a(x.answers, &h::answers, &h::set_answers);
  const bool has_weight = A::reads ? a.header.has_carried() || x.answers == 0 : !x.carried.weight.empty();
  if (has_weight) a(x.carried, &h::carried, &h::mutable_carried);
  if constexpr (A::reads)
    if (!has_weight) x.carried = {};
}

void fields(auto& a, is<participant_failed> auto& x) {
  using h = wire::ParticipantFailed;
  pass(a, x);
  a(x.from, &h::from, &h::set_from);
  a(x.code, &h::code, &h::set_code);
  a(x.text, &h::text, &h::mutable_text);
}

void fields(auto& a, is<discover> auto& x) {
  using h = wire::Discover;
  pass(a, x);
  message_ids(a, x.sends, &h::send_nodes, &h::mutable_send_nodes, &h::send_numbers, &h::mutable_send_numbers);
  a(x.keep_graph, &h::keep_graph, &h::set_keep_graph);
  a(x.create_graph, &h::create_graph, &h::set_create_graph);
}

void fields(auto& a, is<discovered> auto& x) {
  using h = wire::Discovered;
  pass(a, x);
  message_ids(a, x.recvs, &h::recv_nodes, &h::mutable_recv_nodes, &h::recv_numbers, &h::mutable_recv_numbers);
  a(x.settled, &h::settled, &h::set_settled);
}

void fields(auto& a, is<prune> auto& x) {
  using h = wire::Prune;
  pass(a, x);
  a(x.carried, &h::carried, &h::mutable_carried);
  message_ids(a, x.live, &h::live_nodes, &h::mutable_live_nodes, &h::live_numbers, &h::mutable_live_numbers);
  a(x.keep_graph, &h::keep_graph, &h::set_keep_graph);
  a(x.create_graph, &h::create_graph, &h::set_create_graph);
}

void fields(auto& a, is<abort_pass> auto& x) { pass(a, x); }

void fields(auto& a, is<pass_aborted> auto& x) {
  using h = wire::PassAborted;
  pass(a, x);
  a(x.from, &h::from, &h::set_from);
  a(x.sent_to, &h::sent_to, &h::mutable_sent_to);
  a(x.settled, &h::settled, &h::set_settled);
}

void fields(auto& a, is<context_joined> auto& x) {
  using h = wire::ContextJoined;
  context(a, x.context);
  a(x.from, &h::from, &h::set_from);
}

void fields(auto& a, is<held_objects> auto& x) {
  using h = wire::HeldObjects;
  a(x.from, &h::from, &h::set_from);
  a(x.numbers, &h::numbers, &h::mutable_numbers);
}

void fields(auto& a, is<release_context> auto& x) { context(a, x.context); }

void fields(auto& a, is<context_released> auto& x) {
  using h = wire::ContextReleased;
  context(a, x.context);
  a(x.from, &h::from, &h::set_from);
}

void fields(auto& a, is<tensor_piece> auto& x) {
  using h = wire::TensorPiece;
  a(x.from, &h::from, &h::set_from);
  a(x.transfer, &h::transfer, &h::set_transfer);
  a(x.total, &h::total, &h::set_total);
  a(x.offset, &h::offset, &h::set_offset);
  a(x.destination, &h::destination, &h::set_destination);
}

void fields(auto& a, is<request_mark> auto& x) {
  using h = wire::RequestMark;
  a(x.from, &h::from, &h::set_from);
  a(x.process, &h::process, &h::set_process);
}

void fields(auto& a, is<memory_mark> auto& x) {
  using h = wire::MemoryMark;
  a(x.words, &h::words, &h::mutable_words);
  a(x.read_at_once, &h::read_at_once, &h::set_read_at_once);
}

void fields(auto& a, is<tensor_offer> auto& x) {
  using h = wire::TensorOffer;
  a(x.from, &h::from, &h::set_from);
  a(x.transfer, &h::transfer, &h::set_transfer);
  a(x.total, &h::total, &h::set_total);
  a(x.offset, &h::offset, &h::set_offset);
  a(x.bytes, &h::bytes, &h::set_bytes);
  a(x.address, &h::address, &h::set_address);
  a(x.process, &h::process, &h::set_process);
  a(x.mark, &h::mark, &h::set_mark);
  a(x.allocation, &h::allocation, &h::mutable_allocation);
  a(x.event, &h::event, &h::mutable_event);
}

// Defined in wire_status.cpp.
void fields(writer<wire::NodeStatus>& a, const node_status& x);
void fields(reader<wire::NodeStatus>& a, node_status& x);

}  // namespace troupe::wire_fields

namespace troupe {

/// The protobuf message that is the header of T.
template <class T>
using header_t = typename decltype(wire::header_of<T>(wire::messages))::type;

/// True for messages with tensors. The header has a field `tensors` that describes the tensors.
template <class T>
inline constexpr bool has_tensors = requires(const header_t<T>& header) {
  header.tensors();
};

template <class T>
auto& tensors_in(T& x) {
  if constexpr (requires { x.payload; })
    return x.payload.tensors;
  else if constexpr (requires { x.gradients; })
    return x.gradients;
  else
    return x.tensors;
}

}  // namespace troupe
