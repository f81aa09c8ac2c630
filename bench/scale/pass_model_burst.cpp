// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include <troupe/engine/protocol/purse.hpp>

#include "pass_model.hpp"

/// What runs on a node of pass_model: bursts of functions, and walks.
namespace troupe::bench {

void pass_model::start_burst(number node) {
  auto& mine = parts_[node];
  if (mine.protocol->over() || mine.is_barred)
    found_wrong("PA-3: a burst starts on node " + std::to_string(node) + " after a failure or an abort");
  if (mine.away) found_wrong("GA-1: a second burst runs on node " + std::to_string(node));
  auto work = std::make_shared<burst>(burst{node, mine.protocol->take_burst(), {}, 0, false});
  flying_ += weight_of(work->share.carried);
  mine.away = work;
  if (std::exchange(mine.roots_due, false))
    for (const auto root : shape_->roots) settle(root, true, work->ready);
  for (const auto send : std::exchange(mine.deliveries, {})) settle(shape_->sends[send].target, true, work->ready);
  for (const auto send : std::exchange(mine.drops, {})) settle(shape_->sends[send].target, false, work->ready);
  advance(work);
}

/// Counts a gradient that came to the function, or that never comes. A function runs if at least one has come.
void pass_model::settle(number function, bool given, std::vector<number>& ready) {
  std::vector<std::pair<number, bool>> open{{function, given}};
  while (!open.empty()) {
    const auto [f, has_come] = open.back();
    open.pop_back();
    given_[f] = given_[f] || has_come;
    if (--owed_[f] > 0) continue;
    if (given_[f]) {
      ready.push_back(f);
      continue;
    }
    for (const auto& each : shape_->next[f])
      if (each.send == pass_shape::none) open.emplace_back(each.to, false);
  }
}

/// Runs the next function of the burst, if there is one.
void pass_model::advance(const std::shared_ptr<burst>& work) {
  const auto where = place(work->node);
  const auto self = shared_from_this();
  if (work->is_stopped || work->next == work->ready.size())
    return network_.work(where, 0, [self, work] { self->returned(work, false); });
  network_.compute(where, draw_function_ns(), [self, work] {
    if (work->is_stopped) return self->advance(work);
    const auto f = work->ready[work->next++];
    if (++self->runs_[f] > 1) self->found_wrong("function " + std::to_string(f) + " runs twice");
    if (f == self->how_.throwing) return self->returned(work, true);
    const auto& edges = self->shape_->next[f];
    auto left = std::count_if(edges.begin(), edges.end(), [](const auto& each) { return each.send != pass_shape::none; });
    for (const auto& each : edges)
      if (each.send == pass_shape::none) self->settle(each.to, true, work->ready);
    for (const auto& each : edges)
      if (each.send != pass_shape::none && !self->emit(*work, each.send, --left > 0 || work->next < work->ready.size()))
        return self->returned(work, true);
    self->advance(work);
  });
}

std::int64_t pass_model::draw_function_ns() {
  const auto spread = how_.costs.function_ns * how_.costs.spread_percent / 100;
  if (spread == 0) return how_.costs.function_ns;
  return how_.costs.function_ns - spread +
         static_cast<std::int64_t>(network_.below(static_cast<std::uint64_t>(2 * spread + 1)));
}

/// Sends a gradient to the node that sent the tensor. `more`: the burst goes on. Returns false if that node is not up.
bool pass_model::emit(burst& work, number send, bool more) {
  const auto from = work.node;
  const auto to = shape_->sends[send].node;
  if (!reaches(from, to)) return false;
  flying_ -= weight_of(work.share.carried);
  auto part = work.share.give(id(to), more);
  flying_ += weight_of(work.share.carried);
  send_purse(from, to, gradient_bytes_, std::move(part.carried),
             [from, to, send, answers = part.answers](pass_model& self, purse came) {
               self.gradients(to, from, send, std::move(came), answers);
             });
  return true;
}

void pass_model::returned(const std::shared_ptr<burst>& work, bool failed) {
  const auto node = work->node;
  auto& mine = parts_[node];
  flying_ -= weight_of(work->share.carried);
  if (mine.away != work || !mine.protocol) return;
  mine.away.reset();
  for (const auto& [who, count] : work->share.sent) {
    const auto other = number_of(who);
    if (mine.sent_to.insert(other).second && mine.down.contains(other)) failed = true;
  }
  if (mine.is_closed) return end_part(node);
  if (!failed) {
    is_weight_known_ = is_weight_known_ && !mine.protocol->over();
    return act(node, mine.protocol->burst_ended(std::move(work->share)));
  }
  is_weight_known_ = false;
  const bool was_over = mine.protocol->over();
  act(node, mine.protocol->burst_failed());
  if (!was_over) report_failed(node, errc::function_failed, "a function failed, or its gradients could not be sent");
}

/// The functions of the node that a walk reaches take no time: a walk computes nothing.
void pass_model::walk(number node, protocol::walk_from where) {
  auto& mine = parts_[node];
  std::vector<number> from;
  if (where == protocol::walk_from::roots)
    from = shape_->roots;
  else
    for (const auto send : std::exchange(mine.walk_from, {})) from.push_back(shape_->sends[send].target);
  auto work = std::make_shared<burst>(burst{node, {}, {}, 0, false});
  mine.away = work;
  const auto asked = where == protocol::walk_from::roots ? 0 : std::exchange(mine.asked, 0);
  network_.compute(place(node), how_.costs.function_ns,
                   [self = shared_from_this(), node, where, work, asked, from = std::move(from)] {
                     auto& there = self->parts_[node];
                     if (there.away != work || !there.protocol) return;
                     there.away.reset();
                     if (there.is_closed) return self->end_part(node);
                     auto recvs = self->recvs_from(from);
                     const bool settled = there.protocol->settled();
                     self->act(node, there.protocol->burst_ended({}));
                     if (where == protocol::walk_from::roots) {
                       if (self->lead_) self->act(self->lead_->found(self->id(0), recvs, settled));
                       return;
                     }
                     for (auto left = asked; left > 0; --left) {  // the first answer has all recvs
                       const discovered answer{self->how_.context, the_pass, std::exchange(recvs, {}), settled};
                       self->send(node, 0, answer, [node, answer](pass_model& at) {
                         if (at.lead_) at.act(at.lead_->found(at.id(node), answer.recvs, answer.settled));
                       });
                     }
                   });
}

std::vector<message_id> pass_model::recvs_from(std::vector<number> functions) const {
  std::vector<message_id> recvs;
  std::set<number> walked;
  while (!functions.empty()) {
    const auto f = functions.back();
    functions.pop_back();
    if (!walked.insert(f).second) continue;
    for (const auto& each : shape_->next[f])
      if (each.send == pass_shape::none)
        functions.push_back(each.to);
      else
        recvs.push_back(message_of(each.send));
  }
  std::sort(recvs.begin(), recvs.end());
  return recvs;
}

}  // namespace troupe::bench
