// SPDX-License-Identifier: BSD-3-Clause
#include "pass_model.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include <troupe/engine/protocol/purse.hpp>

namespace troupe::bench {

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
      parts_(shape_->nodes),
      owed_(shape_->owed()),
      runs_(shape_->home.size()),
      given_(shape_->home.size()),
      delivered_(shape_->sends.size()),
      dropped_(shape_->sends.size()) {
  for (number n = 0; n < shape_->nodes; ++n) {
    numbers_[id(n)] = n;
    if (const auto parent = shape_->parent(n); parent != pass_shape::none) children_[parent].push_back(n);
  }
  empty_purse_bytes_ = wire_bytes(participant_quiet{how_.context, the_pass, id(0), {}});
  propagate_gradients sample;
  sample.context = how_.context;
  sample.pass = the_pass;
  sample.message = {shape_->sends.size(), id(0)};
  sample.from = "stage1234";
  gradient_bytes_ = wire_bytes(sample) + how_.costs.payload_bytes;
}

/// Sends a message that carries weight, and has `other_bytes` beside its purse.
void pass_model::send_purse(number from, number to, std::uint64_t other_bytes, purse carried,
                            std::function<void(pass_model&, purse)> arrived) {
  std::uint64_t bytes = 0;
  if (from != to) {
    const auto purse_bytes = wire_bytes(participant_quiet{how_.context, the_pass, id(0), carried}) - empty_purse_bytes_;
    largest_purse_ = std::max(largest_purse_, purse_bytes);
    bytes = other_bytes + purse_bytes;
  }
  flying_ += weight_of(carried);
  network_.send(place(from), place(to), bytes,
                [self = shared_from_this(), arrived = std::move(arrived), carried = std::move(carried)]() mutable {
                  self->flying_ -= self->weight_of(carried);
                  arrived(*self, std::move(carried));
                });
}

void pass_model::later(number node, std::int64_t ns, void (pass_model::*what)(number), number argument) {
  network_.after(place(node), ns, [self = shared_from_this(), what, argument] { ((*self).*what)(argument); });
}

void pass_model::start(std::function<void(const pass_result&)> ended) {
  ended_ = std::move(ended);
  begun_ns_ = network_.clock().now_ns();
  std::set<node_id> participants;
  for (number n = 0; how_.knows_all && n < shape_->nodes; ++n) participants.insert(id(n));
  lead_.emplace(id(0), std::move(participants), !how_.fast);
  begin(0);
  parts_[0].roots_due = true;
  later(0, how_.deadline_ns, &pass_model::deadline_passed, 0);
  act(0, parts_[0].protocol->start(protocol::whole_purse()));
}

void pass_model::begin(number node) {
  std::set<message_id> sends;
  for (const auto send : sends_of_nodes_[node]) sends.insert(message_of(send));
  parts_[node].protocol.emplace(id(node), std::move(sends), place_in_calls(node));
  parts_[node].is_routed = true;
}

/// As a context record knows it: the root and its children report to the root in any case.
protocol::call_tree_place_ptr pass_model::place_in_calls(number node) const {
  if (node == 0) return nullptr;
  protocol::call_tree_place result;
  if (const auto parent = shape_->parent(node); parent != pass_shape::none && parent != 0) result.parent = id(parent);
  for (const auto child : children_[node]) result.children.insert(id(child));
  return std::make_shared<const protocol::call_tree_place>(std::move(result));
}

/// The part to which a message of the pass goes; null if the pass is over on the node.
pass_model::part* pass_model::task_of(number node) {
  auto& mine = parts_[node];
  if (!mine.protocol && !mine.is_barred && !mine.is_released && node != 0) begin(node);
  return mine.is_routed ? &mine : nullptr;
}

void pass_model::gradients(number node, number from, number send, purse carried, std::uint32_t answers) {
  if (parts_[node].is_released) return refuse(node, from);
  auto* mine = task_of(node);
  if (mine == nullptr) {
    is_weight_known_ = false;
    return;
  }
  mine->heard_from.insert(from);
  is_weight_known_ = is_weight_known_ && !mine->protocol->over();
  if (!mine->protocol->over()) {
    if (delivered_[send] || dropped_[send])
      found_wrong("PA-2: send " + std::to_string(send) + " gets gradients twice or after it was pruned");
    delivered_[send] = true;
    mine->deliveries.push_back(send);
  }
  auto steps = mine->protocol->gradients(message_of(send), std::move(carried), {id(from), answers});
  if (steps.failure) mine->deliveries.pop_back();
  act(node, std::move(steps));
}

/// A child is quiet.
void pass_model::reported(number node, purse carried, protocol::participant::sender from) {
  auto& mine = parts_[node];
  is_weight_known_ = is_weight_known_ && mine.is_routed && !mine.protocol->over();
  if (mine.is_routed) act(node, mine.protocol->reported(std::move(carried), from));
}

void pass_model::prune(number node, const std::vector<message_id>& live, purse carried) {
  if (parts_[node].is_released) return refuse(node, 0);
  auto* mine = task_of(node);
  is_weight_known_ = is_weight_known_ && mine != nullptr && !mine->protocol->over();
  if (mine != nullptr) act(node, mine->protocol->prune({live.begin(), live.end()}, std::move(carried)));
}

void pass_model::discover(number node, const std::vector<message_id>& sends) {
  auto* mine = parts_[node].is_released ? nullptr : task_of(node);
  if (mine == nullptr || mine->protocol->over())
    return send(node, 0, participant_failed{how_.context, the_pass, id(node), 1, "the pass is over"}, [node](pass_model& self) {
      self.failed(node, errc::pass_aborted, "the pass is over on a node that was asked");
    });
  ++mine->asked;
  for (const auto& each : sends) mine->walk_from.push_back(send_of(each));
  act(node, mine->protocol->walk(protocol::walk_from::sends));
}

void pass_model::abort(number node) {
  auto& mine = parts_[node];
  const bool was_barred = std::exchange(mine.is_barred, true);
  if (!mine.is_routed || was_barred)
    return send(node, 0, pass_aborted{how_.context, the_pass, id(node), {}, true},
                [node](pass_model& self) { self.aborted(node, {}, true); });
  if (mine.away) mine.away->is_stopped = true;
  is_weight_known_ = false;
  act(node, mine.protocol->abort());
}

void pass_model::act(number node, protocol::participant::steps steps) {
  auto& mine = parts_[node];
  for (const auto& each : steps.drop) {
    const auto send = send_of(each);
    if (delivered_[send]) found_wrong("PA-2: send " + std::to_string(send) + " is pruned after its gradients came");
    dropped_[send] = true;
    mine.drops.push_back(send);
  }
  if (steps.start_burst) start_burst(node);
  if (steps.walk) walk(node, *steps.walk);
  if (steps.quiet) report_quiet(node, std::move(*steps.quiet));
  if (steps.failure) report_failed(node, errc::invalid_gradient, *steps.failure);
  if (steps.answer_abort) {
    std::vector<node_id> sent_to;
    for (const auto other : mine.sent_to) sent_to.push_back(id(other));
    const bool settled = mine.protocol->settled();
    const pass_aborted answer{how_.context, the_pass, id(node), sent_to, settled};
    send(node, 0, answer, [node, sent_to, settled](pass_model& self) { self.aborted(node, sent_to, settled); });
    if (node != 0 || mine.is_closed) end_part(node);
  }
}

void pass_model::end_part(number node) {
  auto& mine = parts_[node];
  is_weight_known_ = false;
  mine.protocol.reset();
  mine.away.reset();
  mine.is_routed = false;
  mine.is_barred = true;
}

/// To the parent, which takes part in the pass, or to the initiator.
void pass_model::report_quiet(number node, protocol::participant::report what) {
  const auto parent = shape_->parent(node);
  if (what.to_parent && reaches(node, parent)) {
    const protocol::participant::sender from{id(node), what.answers};
    return send_purse(node, parent, empty_purse_bytes_, std::move(what.carried),
                      [parent, from](pass_model& self, purse came) { self.reported(parent, std::move(came), from); });
  }
  if (protocol::is_empty(what.carried)) return;
  if (!reaches(node, 0)) {
    is_weight_known_ = false;
    return;
  }
  send_purse(node, 0, empty_purse_bytes_, std::move(what.carried),
             [](pass_model& self, purse came) { self.quiet(std::move(came)); });
}

void pass_model::report_failed(number node, errc code, const std::string& text) {
  if (reaches(node, 0))
    send(node, 0, participant_failed{how_.context, the_pass, id(node), static_cast<std::uint8_t>(code), text},
         [node, code, text](pass_model& self) { self.failed(node, code, text); });
}

/// A message came for a context that was released here: the initiator has to know, or else the sender of the message.
void pass_model::refuse(number node, number from) {
  is_weight_known_ = false;
  if (node != 0) pass_on_failure(node, reaches(node, 0) ? 0 : from, errc::unknown_context, "the context was released");
}

/// Tells another node of a failure. A node that is not the initiator passes it on, if the pass runs there.
void pass_model::pass_on_failure(number node, number to, errc code, const std::string& text) {
  if (!reaches(node, to)) return;
  send(node, to, participant_failed{how_.context, the_pass, id(node), static_cast<std::uint8_t>(code), text},
       [node, to, code, text](pass_model& self) {
         if (to == 0) return self.failed(node, code, text);
         if (self.parts_[to].is_routed) self.report_failed(to, code, text);
       });
}

void pass_model::peer_down(number at, number who) {
  if (at == 0 && lead_) act(lead_->peer_down(id(who), "a node went down during backward"));
  auto& mine = parts_[at];
  if (at != 0 && who == 0) return close(at);
  if (!mine.protocol || !mine.is_routed) return;
  if (mine.sent_to.contains(who) && !mine.protocol->over())
    report_failed(at, errc::peer_down, "a node to which gradients were sent went down");
  else if (mine.protocol->away())
    mine.down.insert(who);
}

/// The two nodes tell each other which contexts they hold: what the opener has released is dropped.
void pass_model::peer_up(number at, number who) {
  if (at != 0 && who == 0 && parts_[0].is_released) close(at);
}

void pass_model::process_ended(number which) {
  auto& mine = parts_[which];
  end_part(which);
  mine.is_released = true;
  if (which == 0) lead_.reset();
}

void pass_model::release() {
  for (number n = 1; n < shape_->nodes; ++n)
    if (reaches(0, n)) send(0, n, release_context{how_.context}, [n](pass_model& self) { self.close(n); });
  close(0);
}

/// The context is released on this node.
void pass_model::close(number node) {
  auto& mine = parts_[node];
  if (std::exchange(mine.is_released, true)) return;
  is_weight_known_ = false;
  if (node != 0 && mine.is_routed && !reaches(node, 0))
    for (const auto other : mine.heard_from)
      pass_on_failure(node, other, errc::peer_down, "a node lost its connection to the node that started the pass");
  mine.is_routed = false;
  if (node == 0) lead_.reset();
  if (mine.away) {
    mine.away->is_stopped = true;
    mine.is_closed = true;
  } else {
    end_part(node);
  }
}

void pass_model::found_wrong(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

}  // namespace troupe::bench
