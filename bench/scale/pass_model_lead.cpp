// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <tuple>
#include <utility>

#include <troupe/engine/protocol/purse.hpp>

#include "pass_model.hpp"

/// The initiator's side of pass_model.
namespace troupe::bench {

void pass_model::quiet(purse carried) {
  if (!lead_) return;
  if (lead_->aborting()) is_weight_known_ = false;
  act(lead_->quiet(std::move(carried)));
}

void pass_model::failed(number from, errc code, const std::string& text) {
  is_weight_known_ = false;
  if (lead_) act(lead_->failed(id(from), code, text));
}

void pass_model::act(protocol::initiator::steps steps) {
  if (steps.walk_roots) {
    act(0, parts_[0].protocol->walk(protocol::walk_from::roots));
  }
  for (auto& [who, sends] : steps.discover) {
    const auto to = number_of(who);
    if (!reaches(0, to)) {
      failed(to, errc::peer_down, "a node is down");
      continue;
    }
    troupe::discover question{how_.context, the_pass, std::move(sends)};
    send(0, to, question, [to, all = question.sends](pass_model& self) { self.discover(to, all); });
  }
  if (how_.fast && !steps.prune.empty()) found_wrong("IN-4: sends are pruned in fast mode");
  for (auto& [who, each] : steps.prune) {
    const auto to = number_of(who);
    if (!reaches(0, to)) {
      failed(to, errc::peer_down, "a node is down");
      continue;
    }
    const auto bytes = wire_bytes(troupe::prune{how_.context, the_pass, each.live, {}});
    send_purse(0, to, bytes, std::move(each.carried),
               [to, live = std::move(each.live)](pass_model& self, purse came) { self.prune(to, live, std::move(came)); });
  }
  if (!steps.unused.empty()) failed(0, errc::misuse, "results went unused in fast mode");
  for (const auto who : steps.abort) ask_abort(number_of(who));
  if (lead_ && lead_->aborting() && !steps.abort.empty()) later(0, abort_deadline_ns, &pass_model::deadline_passed, 0);
  if (steps.complete) ended();
}

/// An abort is a request, which ends after a second without an answer.
void pass_model::ask_abort(number who) {
  if (!reaches(0, who)) {
    network_.work(place(0), 0, [self = shared_from_this(), who] {
      if (self->lead_) self->act(self->lead_->peer_down(self->id(who), "is down"));
    });
    return;
  }
  aborts_open_.insert(who);
  send(0, who, abort_pass{how_.context, the_pass}, [who](pass_model& self) { self.abort(who); });
  network_.after(place(0), abort_deadline_ns, [self = shared_from_this(), who] { self->aborted(who, {}, false); });
}

void pass_model::aborted(number who, const std::vector<node_id>& sent_to, bool settled) {
  if (aborts_open_.erase(who) == 0 || !lead_) return;
  act(lead_->aborted(id(who), sent_to, settled));
}

void pass_model::deadline_passed(number) {
  if (!lead_ || lead_->complete()) return;
  if (lead_->aborting()) return act(lead_->abort_timeout());
  failed(0, errc::deadline_passed, "backward was not complete within its deadline");
}

void pass_model::ended() {
  if (result_) return found_wrong("IN-1: the pass ends twice");
  auto& how = result_.emplace();
  how.time_ns = network_.clock().now_ns() - begun_ns_;
  how.largest_purse_bytes = largest_purse_;
  how.succeeded = !lead_->result();
  if (const auto& failure = lead_->result()) {
    how.code = failure->code;
    how.error = failure->text;
    auto& mine = parts_[0];
    mine.is_routed = false;
    is_weight_known_ = false;
    if (mine.away)
      mine.is_closed = true;
    else
      end_part(0);
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

pass_model::weight pass_model::weight_of(const purse& carried) const {
  weight sum = 0;
  if (!how_.checks_weight) return sum;
  for (const auto exponent : carried.weight)
    if (exponent <= finest) sum += weight{1} << (finest - exponent);
  return sum;
}

std::string pass_model::wrong() const {
  if (!wrong_.empty() || !how_.checks_weight || !is_weight_known_ || !lead_ || result_) return wrong_;
  auto sum = flying_ + weight_of(std::get<1>(lead_->state()));
  for (const auto& each : parts_)
    if (each.protocol) sum += weight_of(std::get<1>(each.protocol->state()));
  return sum == weight{1} << finest ? std::string() : "PU-1, PA-1: weight of the pass is lost or made";
}

}  // namespace troupe::bench
