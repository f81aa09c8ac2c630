// SPDX-License-Identifier: BSD-3-Clause
#include "pass_model.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include <troupe/engine/protocol/weight_throwing.hpp>

#include "wire_bytes.hpp"

namespace troupe::simulation {

std::string pass_costs::text() const {
  std::array<char, 200> line;
  std::snprintf(line.data(), line.size(), "%.0f us CPU a function (%lld %% more or less), %llu bytes of gradients in a message",
                static_cast<double>(function_ns) / 1e3, static_cast<long long>(spread_percent),
                static_cast<unsigned long long>(payload_bytes));
  return line.data();
}

pass_model::pass_model(simulated_network& network, std::shared_ptr<const pass_shape> shape, terms how)
    : network_(network),
      shape_(std::move(shape)),
      how_(std::move(how)),
      sends_of_nodes_(shape_->sends_of_nodes()),
      children_(shape_->nodes),
      states_(shape_->nodes),
      owed_(shape_->owed()),
      runs_(shape_->home.size()),
      given_(shape_->home.size()),
      delivered_(shape_->sends.size()),
      dropped_(shape_->sends.size()) {
  for (number n = 0; n < shape_->nodes; ++n) {
    numbers_[id_of(n)] = n;
    if (const auto parent = shape_->parent(n); parent != pass_shape::none) children_[parent].push_back(n);
  }
  weightless_bytes_ = wire_bytes(participant_quiet{how_.context, the_pass, id_of(0), {}});
  propagate_gradients sample;
  sample.context = how_.context;
  sample.pass = the_pass;
  sample.message = {shape_->sends.size(), id_of(0)};
  sample.from = "stage1234";
  gradient_bytes_ = wire_bytes(sample) + how_.costs.payload_bytes;
}

std::uint64_t pass_model::bytes_of(const event& what) {
  const auto& context = how_.context;
  std::uint64_t weight_bytes = 0;
  if (!protocol::is_empty(what.carried))
    weight_bytes = wire_bytes(participant_quiet{context, the_pass, id_of(0), what.carried}) - weightless_bytes_;
  largest_weight_ = std::max(largest_weight_, weight_bytes);
  switch (what.what) {
    case kind::gradients:
      return gradient_bytes_ + weight_bytes;
    case kind::quiet:
      return weightless_bytes_ + weight_bytes;
    case kind::prune:
      return wire_bytes(troupe::prune{context, the_pass, what.ids, {}}) + weight_bytes;
    case kind::discover:
      return wire_bytes(troupe::discover{context, the_pass, what.ids});
    case kind::found:
      return wire_bytes(discovered{context, the_pass, what.ids, what.settled});
    case kind::abort:
      return wire_bytes(abort_pass{context, the_pass});
    case kind::aborted:
      return wire_bytes(pass_aborted{context, the_pass, id_of(what.from), what.sent_to, what.settled});
    case kind::failed:
      return wire_bytes(
        participant_failed{context, the_pass, id_of(what.from), static_cast<std::uint8_t>(what.why->code), what.why->text});
    default:
      return wire_bytes(release_context{context});
  }
}

void pass_model::post(event what) {
  if (!reaches(what.from, what.to)) {
    is_weight_known_ = is_weight_known_ && protocol::is_empty(what.carried);
    return;
  }
  const auto bytes = what.from == what.to ? 0 : bytes_of(what);
  flying_ += weight_of(what.carried);
  network_.send(host_of(what.from), host_of(what.to), bytes, [self = shared_from_this(), what = std::move(what)]() mutable {
    self->flying_ -= self->weight_of(what.carried);
    what.what == kind::release ? self->close(what.to) : self->handle(what);
  });
}

void pass_model::later(std::int64_t ns) {
  network_.after(host_of(0), ns, [self = shared_from_this()] {
    if (self->lead_) self->act(0, self->lead_->deadline_passed("backward was not complete within its deadline"));
  });
}

/// An abort is a request, which ends after a second without an answer.
void pass_model::await_abort(pass_index, node_id who) {
  network_.after(host_of(0), abort_deadline_ns, [self = shared_from_this(), who] {
    if (self->lead_) self->act(0, self->lead_->aborted(who, {}, false));
  });
}

void pass_model::start(std::function<void(const pass_result&)> ended) {
  ended_ = std::move(ended);
  begun_ns_ = network_.clock().now_ns();
  std::set<node_id> participants;
  for (number n = 0; how_.knows_all && n < shape_->nodes; ++n) participants.insert(id_of(n));
  lead_.emplace(id_of(0), std::move(participants), !how_.fast);
  begin(0);
  states_[0].roots_due = true;
  later(how_.deadline_ns);
  act(0, 0, states_[0].protocol->start(protocol::whole_weight()));
}

void pass_model::begin(number node) {
  std::set<message_id> sends;
  for (const auto send : sends_of_nodes_[node]) sends.insert(message_of(send));
  states_[node].protocol.emplace(std::move(sends), position_in_calls(node), node == 0);
  states_[node].is_routed = true;
}

/// As a context record knows it: the root and its children report to the root in any case.
protocol::call_tree_position_ptr pass_model::position_in_calls(number node) const {
  if (node == 0) return nullptr;
  protocol::call_tree_position result;
  if (const auto parent = shape_->parent(node); parent != pass_shape::none && parent != 0) result.parent = id_of(parent);
  for (const auto child : children_[node]) result.children.insert(id_of(child));
  return std::make_shared<const protocol::call_tree_position>(std::move(result));
}

protocol::participant* pass_model::join(number node, pass_index pass) {
  auto& mine = states_[node];
  if (!mine.protocol && !mine.is_barred && !mine.is_released && node != 0) begin(node);
  return routed(node, pass);
}

protocol::participant* pass_model::skip(number node, pass_index pass) {
  auto* mine = routed(node, pass);
  states_[node].is_routed = false;
  states_[node].is_barred = true;
  is_weight_known_ = false;
  return mine;
}

void pass_model::keep(const event& what) {
  const auto send = send_of(what.send);
  const bool over = states_[what.to].protocol->over();
  if (!over && (delivered_[send] || dropped_[send]))
    found_wrong("PA-2: send " + std::to_string(send) + " gets gradients twice or after it was pruned");
  delivered_[send] = delivered_[send] || !over;
  states_[what.to].deliveries.push_back(send);
}

void pass_model::ended(number node, pass_index pass) {
  skip(node, pass);
  states_[node].protocol.reset();
  states_[node].away.reset();
}

void pass_model::acted(number node, pass_index pass) {
  const auto* mine = participant(node, pass);
  is_weight_known_ = is_weight_known_ && mine != nullptr && !mine->over();
}

void pass_model::peer_down(number at, number who) {
  if (at != 0 && who == 0) return close(at);
  hear(at, 0, who);
}

/// The two nodes tell each other which contexts they hold: what the opener has released is dropped.
void pass_model::peer_up(number at, number who) {
  if (at != 0 && who == 0 && states_[0].is_released) close(at);
}

void pass_model::process_ended(number which) {
  ended(which, 0);
  states_[which].is_released = true;
  if (which == 0) lead_.reset();
}

void pass_model::release() {
  for (number n = 1; n < shape_->nodes; ++n) post({.what = kind::release, .to = n});
  close(0);
}

/// The context is released on this node.
void pass_model::close(number node) {
  if (std::exchange(states_[node].is_released, true)) return;
  is_weight_known_ = false;
  if (node == 0) lead_.reset();
  pass_carrier::close(node, 0);
}

void pass_model::complete(pass_index, const std::vector<node_id>&) {
  if (result_) return found_wrong("IN-1: the pass ends twice");
  auto& how = result_.emplace();
  how.time_ns = network_.clock().now_ns() - begun_ns_;
  how.largest_weight_bytes = largest_weight_;
  how.succeeded = !lead_->result();
  if (const auto& failure = lead_->result()) {
    how.code = failure->code;
    how.error = failure->text;
  } else {
    const auto expected = shape_->reached();
    for (number f = 0; f < expected.size(); ++f)
      if (runs_[f] != (expected[f] ? 1 : 0))
        found_wrong("IN-1: the pass succeeds, and function " + std::to_string(f) + " ran " + std::to_string(runs_[f]) +
                    " times");
    if (how_.fast && shape_->has_unused()) found_wrong("IN-4: a pass in fast mode succeeds with an unused send");
  }
  if (ended_) ended_(how);
}

pass_model::weight pass_model::weight_of(const weight_share& carried) const {
  weight sum = 0;
  if (!how_.checks_weight) return sum;
  for (const auto exponent : carried.weight)
    if (exponent <= finest) sum += weight{1} << (finest - exponent);
  return sum;
}

std::string pass_model::wrong() const {
  if (!wrong_.empty() || !how_.checks_weight || !is_weight_known_ || !lead_ || result_) return wrong_;
  auto sum = flying_ + weight_of(std::get<1>(lead_->state()));
  for (const auto& each : states_)
    if (each.protocol) sum += weight_of(std::get<1>(each.protocol->state()));
  return sum == weight{1} << finest ? std::string() : "WG-1, PA-1: weight of the pass is lost or made";
}

void pass_model::found_wrong(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

}  // namespace troupe::simulation
