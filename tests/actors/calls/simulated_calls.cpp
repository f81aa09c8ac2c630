// SPDX-License-Identifier: BSD-3-Clause
#include "actors/calls/simulated_calls.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace troupe::test {

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t latency_ns = ms / 10;
constexpr std::int64_t idle_time_ns = 1'000 * ms;
constexpr std::uint32_t most_depth = 6;

simulation::network_costs steady_network() {
  simulation::network_costs result;
  result.latency_ns = latency_ns;
  return result;
}

error why(errc code) { return {code, to_text(code)}; }

}  // namespace

simulated_calls::simulated_calls(const settings& how)
    : settings_(how), network_(clock_, how.nodes, steady_network(), how.seed), awake_ns_(how.nodes, 0) {
  network_.on_lost = [this](std::size_t at, std::size_t other) { note_down(at, other); };
  nodes_.resize(how.nodes);
  for (std::size_t i = 0; i < how.nodes; ++i) begin(i);
}

void simulated_calls::begin(std::size_t which) {
  nodes_[which] = std::make_unique<node>(node{.id = {++lives_}, .calls = {}, .served = taken(settings_.limits)});
}

void simulated_calls::restart(std::size_t node) {
  network_.end(node);
  network_.start(node);
  begin(node);
}

void simulated_calls::freeze(std::size_t node) { network_.freeze(node); }

void simulated_calls::thaw(std::size_t node) {
  awake_ns_[node] = clock_.now_ns();
  network_.thaw(node);
}

void simulated_calls::settle() {
  network_.mend_all();
  for (std::size_t i = 0; i < nodes_.size(); ++i) thaw(i);
  while (clock_.step()) {
  }
}

std::string simulated_calls::wrong_at_end() const {
  for (std::size_t i = 0; i < nodes_.size() && wrong_.empty(); ++i) {
    const auto& each = *nodes_[i];
    const auto text = "node " + std::to_string(i) + " has ";
    if (!each.calls.is_empty() || !each.own.empty()) return text + "calls that have not ended";
    if (!each.served.is_empty() || !each.foreign.empty()) return text + "calls of others that have not ended";
    if (!each.workers.empty()) return text + "workers that have not ended";
  }
  return wrong_;
}

void simulated_calls::expect(bool is_so, std::size_t where, const std::string& what) {
  if (!is_so && wrong_.empty())
    wrong_ = "node " + std::to_string(where) + " at " + std::to_string(clock_.now_ns() / ms) + " ms: " + what;
}

void simulated_calls::connect(std::size_t a, std::size_t b) {
  network_.connect(a, b);
  note_up(a, b);
  network_.after(b, 0, [this, a, b] { note_up(b, a); });
}

void simulated_calls::note_up(std::size_t where, std::size_t other) {
  auto& up = at(where).up;
  if (up.contains(other) && up[other] != at(other).id) note_down(where, other);
  up[other] = at(other).id;
}

void simulated_calls::note_down(std::size_t where, std::size_t other) {
  const auto gone = at(where).up.extract(other);
  if (!gone) return;
  on(where, made::node_down{gone.mapped(), why(errc::peer_down)});
  on(where, taken::node_down{gone.mapped(), why(errc::peer_down)});
}

void simulated_calls::make_call(std::size_t from, std::uint32_t depth, std::int64_t deadline_ns,
                                std::optional<taken::number> of) {
  auto& here = at(from);
  const auto to = static_cast<std::size_t>(below(static_cast<std::int64_t>(nodes_.size())));
  const auto known = here.up.find(to);
  const bool is_up = to == from || known != here.up.end();
  const node_id whom = known != here.up.end() ? known->second : at(to).id;
  const auto number = ++here.last;
  const bool is_late = below(4) == 0;
  const context_id context{{1}, static_cast<std::uint64_t>(below(3))};
  const object_id object{whom, static_cast<std::uint64_t>(below(3))};
  const made::made facts{number, whom, context, object, depth, is_late, is_up};
  here.own[number] = {to, facts, deadline_ns, of};
  ++counts_.made;
  counts_.deepest = std::max<std::size_t>(counts_.deepest, depth);
  if (is_late)
    network_.after(from, below(5 * ms), [this, from, number] {
      on(from, below(20) == 0 ? made::event(made::failed{number, why(errc::function_failed)}) : made::tensors_came{number});
    });
  on(from, facts);
}

void simulated_calls::call_from(std::size_t node) {
  network_.after(node, 0, [this, node] { make_call(node, 0, clock_.now_ns() + below(settings_.longest_ns) + 1, {}); });
}

void simulated_calls::release_context(std::size_t node, std::uint64_t number) {
  network_.after(node, 0, [this, node, number] {
    on(node, made::context_closed{{{1}, number}, why(errc::unknown_context)});
    on(node, taken::context_closed{{{1}, number}, why(errc::unknown_context)});
  });
}

/// Runs `then` at the process `whom` of the other node, unless the message is lost.
void simulated_calls::send(std::size_t from, std::size_t to, node_id whom, simulation::simulated_network::action then) {
  network_.send(from, to, 0, [this, to, whom, then = std::move(then)] {
    if (at(to).id == whom) then();
  });
}

void simulated_calls::on(std::size_t where, const made::event& what) {
  for (const auto& effect : at(where).calls.on(what)) std::visit([&](const auto& each) { carry_out(where, each); }, effect);
}

void simulated_calls::on(std::size_t where, const taken::event& what) {
  for (const auto& effect : at(where).served.on(what)) std::visit([&](const auto& each) { carry_out(where, each); }, effect);
}

void simulated_calls::carry_out(std::size_t where, const made::meet& what) {
  const auto& call = at(where).own.at(what.call);
  network_.after(where, 2 * latency_ns + below(3 * ms), [this, where, to = call.to, whom = call.facts.to, number = what.call] {
    if (at(to).id != whom || network_.is_cut(where, to) || network_.is_cut(to, where))
      return on(where, made::failed{number, why(errc::peer_down)});
    connect(where, to);
    on(where, made::met{number});
  });
}

void simulated_calls::carry_out(std::size_t where, const made::limit& what) {
  const auto left = at(where).own.at(what.call).deadline_ns - clock_.now_ns();
  network_.after(where, left, [this, where, number = what.call] {
    on(where, made::failed{number, why(errc::deadline_passed)});
  });
}

void simulated_calls::carry_out(std::size_t where, const made::ship& what) {
  const auto shipped = [this, where, number = what.call] {
    const auto found = at(where).own.find(number);
    if (found == at(where).own.end()) return;  // the node is down, and nothing leaves to it
    found->second.in_fragments = below(4) == 0;
    on(where, made::shipped{number, found->second.in_fragments});
  };
  if (below(3) != 0) return shipped();
  carry_out(where, made::limit{{what.call}});
  network_.after(where, below(20 * ms), shipped);
}

void simulated_calls::carry_out(std::size_t where, const made::ask& what) {
  auto& call = at(where).own.at(what.call);
  carry_out(where, made::limit{{what.call}});
  foreign_call request{where, at(where).id, call.facts, call.deadline_ns};
  const auto leaves = [this, where, to = call.to, request] {
    send(where, to, request.facts.to, [this, to, request] { came(to, request); });
  };
  call.in_fragments ? network_.after(where, below(10 * ms), leaves) : leaves();
}

void simulated_calls::carry_out(std::size_t where, const made::finish& what) {
  ++counts_.answered;
  end(where, what.call, true);
}

void simulated_calls::carry_out(std::size_t where, const made::fail& what) {
  ++counts_.failed;
  end(where, what.call, false);
}

void simulated_calls::end(std::size_t where, made::number which, bool is_well) {
  auto& call = at(where).own.at(which);
  expect(!std::exchange(call.has_ended, true), where, "a call ends twice");
  expect(clock_.now_ns() <= std::max(call.deadline_ns, awake_ns_[where]), where, "a call ends after its deadline");
  counts_.last_end_ns = clock_.now_ns();
  if (call.of) network_.after(where, 0, [this, where, of = *call.of, is_well] { go_on(where, of, is_well); });
}

void simulated_calls::carry_out(std::size_t where, const made::forget& what) {
  expect(at(where).own.at(what.call).has_ended, where, "a call is forgotten that has not ended");
  at(where).own.erase(what.call);
}

void simulated_calls::came(std::size_t where, foreign_call call) {
  auto& here = at(where);
  const auto& facts = call.facts;
  if (facts.object) {
    auto& last = here.order[{facts.object, facts.depth, call.caller}];
    const auto& own = at(call.from).own;
    const bool is_open = at(call.from).id == call.caller && own.contains(facts.call) && !own.at(facts.call).has_ended;
    expect(last < facts.call || !is_open, where, "a call on an object comes after a later one");
    last = std::max(last, facts.call);
  }
  const auto number = ++here.last;
  const auto bytes = call.from == where ? 0 : static_cast<std::uint64_t>(1 + below(5'000));
  call.nested = facts.depth < most_depth ? std::max<std::int64_t>(0, below(5) - 2) : 0;
  here.foreign[number] = std::move(call);
  on(where, taken::came{number, here.foreign[number].caller, facts.context, facts.depth, bytes});
  look_at(where, number);
}

/// A call waits for its context, or for gradients, or can run. It was turned away if the node does not know it.
void simulated_calls::look_at(std::size_t where, taken::number which) {
  const auto found = at(where).foreign.find(which);
  if (found == at(where).foreign.end()) return;
  switch (below(8)) {
    case 0:
      on(where, taken::dropped{which});
      answer(where, which, false);
      return;
    case 1:
      on(where, taken::held{which});
      return network_.after(where, below(50 * ms), [this, where, which] { on(where, taken::wait_over{which}); });
    default:
      return on(where, taken::ready{{which}, below(2) == 0});
  }
}

void simulated_calls::carry_out(std::size_t where, const taken::refuse_excess_bytes& what) { answer(where, what.call, false); }

void simulated_calls::carry_out(std::size_t where, const taken::refuse& what) { answer(where, what.call, false); }

void simulated_calls::carry_out(std::size_t where, const taken::limit& what) {
  const auto left = at(where).foreign.at(what.call).deadline_ns - clock_.now_ns();
  network_.after(where, left, [this, where, number = what.call] {
    on(where, taken::refused{number, why(errc::deadline_passed)});
  });
}

void simulated_calls::carry_out(std::size_t where, const taken::start& what) {
  auto& here = at(where);
  auto& call = here.foreign.at(what.call);
  if (what.joins_series) {
    call.on = *what.on;
    here.behind.push_back(what.call);
    const auto runs = here.foreign.find(here.runs_in_series);
    if (runs != here.foreign.end() && runs->second.is_blocked) network_.after(where, 0, [this, where] { leave_series(where); });
    return;
  }
  if (!what.on && below(50) == 0) return on(where, taken::no_worker{what.call, why(errc::function_failed)});
  call.on = what.on ? *what.on : ++here.last;
  expect(!what.on || here.workers.at(call.on), where, "a call runs on a worker that is not idle");
  here.workers[call.on] = false;
  counts_.workers = std::max(counts_.workers, here.workers.size());
  compute(where, what.call);
  if (here.served.has_series() || below(2) == 0) return;
  here.series = call.on;
  here.runs_in_series = what.call;
  on(where, taken::begins_series{what.call, call.on});
}

/// The call of the series that runs takes long, so that the others leave the series.
void simulated_calls::leave_series(std::size_t where) {
  for (const auto each : std::exchange(at(where).behind, {})) on(where, taken::leaves_series{{each}});
}

void simulated_calls::compute(std::size_t where, taken::number which) {
  network_.after(where, below(2 * ms), [this, where, which] { go_on(where, which, true); });
}

/// The function of the call has computed, or a call that it has made has ended.
void simulated_calls::go_on(std::size_t where, taken::number which, bool is_well) {
  auto& here = at(where);
  auto& call = here.foreign.at(which);
  if (std::exchange(call.is_blocked, false)) {
    on(where, taken::is_resumed{});
    if (is_well) return compute(where, which);
    call.nested = 0;
  }
  if (call.nested > 0 && clock_.now_ns() < call.deadline_ns) {
    --call.nested;
    call.is_blocked = true;
    if (call.on == here.series) network_.after(where, below(ms), [this, where] { leave_series(where); });
    on(where, taken::is_blocked{});
    return make_call(where, call.facts.depth + 1, call.deadline_ns, which);
  }
  // The result may still come from a device when the worker is free.
  const bool is_counted = call.from != where && here.up.contains(call.from) && here.up[call.from] == call.caller;
  if (is_well && is_counted) on(where, taken::answered{which, static_cast<std::uint64_t>(1 + below(8'000))});
  const auto leaves = [this, where, which, is_well] {
    on(where, taken::answer_left{which});
    answer(where, which, is_well);
  };
  const auto worker = call.on;
  const auto depth = call.facts.depth;
  here.workers.at(worker) = true;
  is_well&& is_counted&& below(3) == 0 ? network_.after(where, below(20 * ms), leaves) : leaves();
  on(where, taken::is_free{worker, depth});
  if (worker != here.series || here.behind.empty()) return;
  here.workers.at(worker) = false;
  here.runs_in_series = here.behind.front();
  here.behind.pop_front();
  compute(where, here.runs_in_series);
}

/// The call is over here.
void simulated_calls::answer(std::size_t where, taken::number which, bool is_well) {
  const auto call = at(where).foreign.extract(which).mapped();
  send(where, call.from, call.caller, [this, to = call.from, number = call.facts.call, is_well] {
    on(to, is_well ? made::event(made::answered{number}) : made::failed{number, why(errc::function_failed)});
  });
}

void simulated_calls::carry_out(std::size_t where, const taken::let_go& what) {
  expect(at(where).workers.at(what.who), where, "a worker ends that runs a call");
  at(where).workers.erase(what.who);
}

void simulated_calls::carry_out(std::size_t where, const taken::tick_later&) {
  network_.after(where, idle_time_ns, [this, where] { on(where, taken::tick{}); });
}

void simulated_calls::carry_out(std::size_t where, const taken::ask_taken& what) {
  for (const auto& each : at(where).up)
    if (each.second == what.caller)
      return send(where, each.first, each.second, [this, where, other = each.first, back = at(where).id, what] {
        send(other, where, back, [this, where, what] { on(where, taken::answers_taken{what.caller, what.bytes}); });
      });
}

}  // namespace troupe::test
