// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/wire.hpp>

#include <algorithm>

#include <troupe/messages/wire_parts.hpp>

namespace troupe {

using namespace wire_parts;

void to_wire(const autograd_message& x, wire::Autograd& to) { put_joint(*to.mutable_joint(), x); }

complaint from_wire(const wire::Autograd& from, autograd_message& x) { return parse_joint(from, x); }

void to_wire(const hello& x, wire::Hello& to) {
  put_address(to, x);
  to.set_protocol(x.protocol);
  to.set_digest(x.digest);
  to.set_incarnation(x.incarnation);
  to.set_to(x.to.value);
  to.set_to_name(x.to_name);
  put_bond(to, x.between);
}

complaint from_wire(const wire::Hello& from, hello& x) {
  x.protocol = from.protocol();
  x.to.value = from.to();
  x.to_name = from.to_name();
  x.between = parse_bond(from);
  x.digest = from.digest();
  x.incarnation = from.incarnation();
  return parse_address(from, x);
}

void to_wire(const member& x, wire::Member& to) { put_address(to, x); }

complaint from_wire(const wire::Member& from, member& x) { return parse_address(from, x); }

void to_wire(const std::vector<member>& x, wire::Members& to) { put_members(to, x); }

complaint from_wire(const wire::Members& from, std::vector<member>& x) { return parse_members(from, x); }

void to_wire(const welcome& x, wire::Welcome& to) {
  put_address(*to.mutable_self(), x.self);
  put_news(to, x.news);
  put_bond(to, x.between);
  to.set_incarnation(x.incarnation);
}

complaint from_wire(const wire::Welcome& from, welcome& x) {
  x.between = parse_bond(from);
  x.incarnation = from.incarnation();
  if (complaint bad = parse_address(from.self(), x.self)) return bad;
  return parse_news(from, x.news);
}

void to_wire(const heartbeat& x, wire::Heartbeat& to) {
  to.set_from(x.from.value);
  to.set_sent_ns(x.sent_ns);
  put_bond(to, x.between);
}

complaint from_wire(const wire::Heartbeat& from, heartbeat& x) {
  x.from.value = from.from();
  x.sent_ns = from.sent_ns();
  x.between = parse_bond(from);
  return nullptr;
}

void to_wire(const heartbeat_seen& x, wire::HeartbeatSeen& to) {
  to.set_from(x.from.value);
  to.set_sent_ns(x.sent_ns);
  to.set_answered_ns(x.answered_ns);
  put_bond(to, x.between);
}

complaint from_wire(const wire::HeartbeatSeen& from, heartbeat_seen& x) {
  x.from.value = from.from();
  x.sent_ns = from.sent_ns();
  x.answered_ns = from.answered_ns();
  x.between = parse_bond(from);
  return nullptr;
}

void to_wire(const farewell& x, wire::Farewell& to) {
  to.set_from(x.from.value);
  to.set_reason(x.reason);
}

complaint from_wire(const wire::Farewell& from, farewell& x) {
  x.from.value = from.from();
  x.reason = from.reason();
  return nullptr;
}

void to_wire(const gossip& x, wire::Gossip& to) {
  to.set_from(x.from.value);
  put_news(to, x.news);
  to.set_introduces(x.introduces);
}

complaint from_wire(const wire::Gossip& from, gossip& x) {
  x.from.value = from.from();
  x.introduces = from.introduces();
  return parse_news(from, x.news);
}

void to_wire(const call_request& x, wire::CallRequest& to) {
  to.set_function(x.function);
  to.set_target_node(x.target.node.value);
  to.set_target_number(x.target.number);
  put_values(to, x.values);
  put_joint(*to.mutable_joint(), x.payload);
  to.set_deadline_ns(x.deadline_ns);
  to.set_span(x.span);
  to.set_completed(x.completed.value);
  put(*to.mutable_failed(), x.failed);
  if (!x.calls.empty()) to.set_calls(x.calls);
  to.set_depth(x.depth);
}

complaint from_wire(const wire::CallRequest& from, call_request& x) {
  x.function = from.function();
  x.target = {{from.target_node()}, from.target_number()};
  x.deadline_ns = from.deadline_ns();
  x.span = from.span();
  x.completed.value = from.completed();
  if (complaint bad = parse(from.failed(), x.failed)) return bad;
  x.calls = from.calls();
  x.depth = from.depth();
  x.from_itself = false;
  if (complaint bad = parse_values(from, x.values)) return bad;
  return parse_joint(from, x.payload);
}

void to_wire(const call_result& x, wire::CallResult& to) {
  put_values(to, x.values);
  put_joint(*to.mutable_joint(), x.payload);
  put(*to.mutable_participants(), x.participants);
  if (!x.spans.empty()) to.set_spans(x.spans);
  to.set_is_child(x.is_child);
}

complaint from_wire(const wire::CallResult& from, call_result& x) {
  if (complaint bad = parse(from.participants(), x.participants)) return bad;
  x.spans = from.spans();
  x.is_child = from.is_child();
  if (complaint bad = parse_values(from, x.values)) return bad;
  return parse_joint(from, x.payload);
}

void to_wire(const propagate_gradients& x, wire::PropagateGradients& to) {
  put_pass(to, x);
  put_message(to, x.message);
  put(*to.mutable_carried(), x.carried);
  to.set_keep_graph(x.keep_graph);
  to.set_create_graph(x.create_graph);
  to.set_from(x.from);
  to.set_joint_node(x.joint.node.value);
  to.set_joint_number(x.joint.number);
  to.mutable_requires_grad()->Add(x.requires_grad.begin(), x.requires_grad.end());
  to.mutable_place()->Add(x.place.begin(), x.place.end());
  to.set_format(static_cast<std::uint32_t>(x.format));
  to.set_answers(x.answers);
  to.mutable_unreached()->Add(x.unreached.begin(), x.unreached.end());
  for (const auto& shape : x.shapes) to.add_shapes()->mutable_sizes()->Add(shape.begin(), shape.end());
}

complaint from_wire(const wire::PropagateGradients& from, propagate_gradients& x) {
  if (from.shapes_size() != 0 && from.shapes_size() != from.tensors().kinds_size())
    return "shapes has not as many entries as there are gradients";
  if (from.requires_grad_size() != 0 && from.requires_grad_size() != from.tensors().kinds_size())
    return "requires_grad has not as many entries as there are gradients";
  if (from.unreached_size() != 0 && from.unreached_size() != from.tensors().kinds_size())
    return "unreached has not as many entries as there are gradients";
  parse_pass(from, x);
  x.message = parse_message(from);
  if (complaint bad = why_not_number(x.message)) return bad;
  x.keep_graph = from.keep_graph();
  x.create_graph = from.create_graph();
  x.from = from.from();
  x.joint = {from.joint_number(), {from.joint_node()}};
  x.requires_grad.assign(from.requires_grad().begin(), from.requires_grad().end());
  x.place.assign(from.place().begin(), from.place().end());
  x.format = parse_format(from.format());
  x.answers = from.answers();
  x.unreached.assign(from.unreached().begin(), from.unreached().end());
  x.shapes.clear();
  for (const auto& shape : from.shapes()) x.shapes.emplace_back(shape.sizes().begin(), shape.sizes().end());
  return parse(from.carried(), x.carried);
}

void to_wire(const participant_quiet& x, wire::ParticipantQuiet& to) {
  put_pass(to, x);
  to.set_from(x.from.value);
  if (!x.carried.weight.empty()) put(*to.mutable_carried(), x.carried);
  to.set_answers(x.answers);
}

complaint from_wire(const wire::ParticipantQuiet& from, participant_quiet& x) {
  parse_pass(from, x);
  x.from.value = from.from();
  x.answers = from.answers();
  if (from.has_carried() || x.answers == 0) return parse(from.carried(), x.carried);
  x.carried = {};
  return nullptr;
}

void to_wire(const participant_failed& x, wire::ParticipantFailed& to) {
  put_pass(to, x);
  to.set_from(x.from.value);
  to.set_code(x.code);
  to.set_text(x.text);
}

complaint from_wire(const wire::ParticipantFailed& from, participant_failed& x) {
  if (from.code() > std::numeric_limits<std::uint8_t>::max()) return "an error code is above 255";
  parse_pass(from, x);
  x.from.value = from.from();
  x.code = static_cast<std::uint8_t>(from.code());
  x.text = from.text();
  return nullptr;
}

void to_wire(const discover& x, wire::Discover& to) {
  put_pass(to, x);
  put(*to.mutable_send_nodes(), *to.mutable_send_numbers(), x.sends);
  to.set_keep_graph(x.keep_graph);
  to.set_create_graph(x.create_graph);
}

complaint from_wire(const wire::Discover& from, discover& x) {
  parse_pass(from, x);
  x.keep_graph = from.keep_graph();
  x.create_graph = from.create_graph();
  return parse(from.send_nodes(), from.send_numbers(), x.sends);
}

void to_wire(const discovered& x, wire::Discovered& to) {
  put_pass(to, x);
  put(*to.mutable_recv_nodes(), *to.mutable_recv_numbers(), x.recvs);
  to.set_settled(x.settled);
}

complaint from_wire(const wire::Discovered& from, discovered& x) {
  parse_pass(from, x);
  x.settled = from.settled();
  return parse(from.recv_nodes(), from.recv_numbers(), x.recvs);
}

void to_wire(const prune& x, wire::Prune& to) {
  put_pass(to, x);
  put(*to.mutable_live_nodes(), *to.mutable_live_numbers(), x.live);
  put(*to.mutable_carried(), x.carried);
  to.set_keep_graph(x.keep_graph);
  to.set_create_graph(x.create_graph);
}

complaint from_wire(const wire::Prune& from, prune& x) {
  parse_pass(from, x);
  x.keep_graph = from.keep_graph();
  x.create_graph = from.create_graph();
  if (complaint bad = parse(from.carried(), x.carried)) return bad;
  return parse(from.live_nodes(), from.live_numbers(), x.live);
}

void to_wire(const abort_pass& x, wire::AbortPass& to) { put_pass(to, x); }

complaint from_wire(const wire::AbortPass& from, abort_pass& x) {
  parse_pass(from, x);
  return nullptr;
}

void to_wire(const pass_aborted& x, wire::PassAborted& to) {
  put_pass(to, x);
  to.set_from(x.from.value);
  put(*to.mutable_sent_to(), x.sent_to);
  to.set_settled(x.settled);
}

complaint from_wire(const wire::PassAborted& from, pass_aborted& x) {
  parse_pass(from, x);
  x.from.value = from.from();
  x.settled = from.settled();
  return parse(from.sent_to(), x.sent_to);
}

void to_wire(const context_joined& x, wire::ContextJoined& to) {
  put_context(to, x.context);
  to.set_from(x.from.value);
}

complaint from_wire(const wire::ContextJoined& from, context_joined& x) {
  x.context = parse_context(from);
  x.from.value = from.from();
  return nullptr;
}

void to_wire(const held_objects& x, wire::HeldObjects& to) {
  to.set_from(x.from.value);
  to.mutable_numbers()->Add(x.numbers.begin(), x.numbers.end());
}

complaint from_wire(const wire::HeldObjects& from, held_objects& x) {
  x.from.value = from.from();
  x.numbers.assign(from.numbers().begin(), from.numbers().end());
  return nullptr;
}

void to_wire(const release_context& x, wire::ReleaseContext& to) { put_context(to, x.context); }

complaint from_wire(const wire::ReleaseContext& from, release_context& x) {
  x.context = parse_context(from);
  return nullptr;
}

void to_wire(const context_released& x, wire::ContextReleased& to) {
  put_context(to, x.context);
  to.set_from(x.from.value);
}

complaint from_wire(const wire::ContextReleased& from, context_released& x) {
  x.context = parse_context(from);
  x.from.value = from.from();
  return nullptr;
}

void to_wire(const tensor_piece& x, wire::TensorPiece& to) {
  to.set_from(x.from.value);
  to.set_transfer(x.transfer);
  to.set_total(x.total);
  to.set_offset(x.offset);
}

complaint from_wire(const wire::TensorPiece& from, tensor_piece& x) {
  x.from.value = from.from();
  x.transfer = from.transfer();
  x.total = from.total();
  x.offset = from.offset();
  return nullptr;
}

void to_wire(const request_mark& x, wire::RequestMark& to) {
  to.set_from(x.from.value);
  to.set_process(x.process);
}

complaint from_wire(const wire::RequestMark& from, request_mark& x) {
  x.from.value = from.from();
  x.process = from.process();
  return nullptr;
}

void to_wire(const memory_mark& x, wire::MemoryMark& to) { to.mutable_words()->Add(x.words.begin(), x.words.end()); }

complaint from_wire(const wire::MemoryMark& from, memory_mark& x) {
  if (from.words_size() != static_cast<int>(x.words.size())) return "expected a mark of four words";
  std::copy(from.words().begin(), from.words().end(), x.words.begin());
  return nullptr;
}

void to_wire(const tensor_offer& x, wire::TensorOffer& to) {
  to.set_from(x.from.value);
  to.set_transfer(x.transfer);
  to.set_total(x.total);
  to.set_offset(x.offset);
  to.set_bytes(x.bytes);
  to.set_address(x.address);
  to.set_process(x.process);
  to.set_mark(x.mark);
}

complaint from_wire(const wire::TensorOffer& from, tensor_offer& x) {
  x.from.value = from.from();
  x.transfer = from.transfer();
  x.total = from.total();
  x.offset = from.offset();
  x.bytes = from.bytes();
  x.address = from.address();
  x.process = from.process();
  x.mark = from.mark();
  return nullptr;
}

}  // namespace troupe
