// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <troupe/engine/protocol/weight_throwing.hpp>

#include "pass_model.hpp"

/// What runs on a node of pass_model: bursts of functions, and walks.
namespace troupe::simulation {

void pass_model::run(number node, pass_index, protocol::participant::run_burst& what) {
  auto& mine = states_[node];
  if (mine.protocol->over() || mine.is_barred)
    found_wrong("PA-3: a burst starts on node " + std::to_string(node) + " after a failure or an abort");
  if (mine.away) found_wrong("GA-1: a second burst runs on node " + std::to_string(node));
  auto work = std::make_shared<burst>(burst{node, std::move(what.share), {}, 0, false});
  flying_ += weight_of(work->share.carried);
  mine.away = work;
  if (std::exchange(mine.roots_due, false))
    for (const auto root : shape_->roots) settle(root, true, work->ready);
  for (const auto send : std::exchange(mine.deliveries, {})) settle(shape_->sends[send].target, true, work->ready);
  for (const auto& each : what.drops) {
    const auto send = send_of(each);
    if (delivered_[send]) found_wrong("PA-2: send " + std::to_string(send) + " is pruned after its gradients came");
    dropped_[send] = true;
    settle(shape_->sends[send].target, false, work->ready);
  }
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
  const auto where = host_of(work->node);
  const auto self = shared_from_this();
  if (work->is_stopped || work->next == work->ready.size())
    return network_.work(where, 0, [self, work] { self->returned(work, std::nullopt); });
  network_.compute(where, draw_function_ns(), [self, work] {
    if (work->is_stopped) return self->advance(work);
    const auto f = work->ready[work->next++];
    if (++self->runs_[f] > 1) self->found_wrong("function " + std::to_string(f) + " runs twice");
    if (f == self->how_.throwing) return self->returned(work, protocol::failure{errc::function_failed, "a function failed"});
    const auto& edges = self->shape_->next[f];
    auto left = std::count_if(edges.begin(), edges.end(), [](const auto& each) { return each.send != pass_shape::none; });
    for (const auto& each : edges)
      if (each.send == pass_shape::none) self->settle(each.to, true, work->ready);
    for (const auto& each : edges)
      if (each.send != pass_shape::none && !self->emit(*work, each.send, --left > 0 || work->next < work->ready.size()))
        return self->returned(work, protocol::failure{errc::peer_down, "gradients can't be sent: a node is down"});
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
  auto given = work.share.give(id_of(to), more);
  flying_ += weight_of(work.share.carried);
  post({.what = kind::gradients,
        .from = from,
        .to = to,
        .send = message_of(send),
        .carried = std::move(given.carried),
        .answers = given.answers});
  return true;
}

void pass_model::returned(const std::shared_ptr<burst>& work, std::optional<protocol::failure> why) {
  flying_ -= weight_of(work->share.carried);
  auto& mine = states_[work->node];
  if (mine.away != work) return;
  mine.away.reset();
  event back{.what = kind::returned, .to = work->node, .why = std::move(why), .share = std::move(work->share)};
  handle(back);
}

/// The functions of the node that a walk reaches take no time: a walk computes nothing.
void pass_model::walk(number node, pass_index, const protocol::participant::run_walk& what) {
  auto from = what.where == protocol::walk_from::roots ? shape_->roots : std::vector<number>();
  for (const auto& send : what.sends) from.push_back(shape_->sends[send_of(send)].target);
  auto work = std::make_shared<burst>(burst{node, {}, {}, 0, false});
  states_[node].away = work;
  network_.compute(host_of(node), how_.costs.function_ns, [self = shared_from_this(), node, work, from = std::move(from)] {
    if (self->states_[node].away != work) return;
    self->states_[node].away.reset();
    event back{.what = kind::returned, .to = node, .ids = self->recvs_from(from)};
    self->handle(back);
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

}  // namespace troupe::simulation
