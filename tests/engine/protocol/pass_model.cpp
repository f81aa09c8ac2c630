// SPDX-License-Identifier: BSD-3-Clause
#include "engine/protocol/pass_model.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <troupe/engine/protocol/weight_throwing.hpp>

namespace troupe::model {

namespace {

constexpr std::uint8_t bit(std::uint8_t node) { return static_cast<std::uint8_t>(1U << node); }

node_id id_of_node(std::uint8_t node) { return {node + 1U}; }

std::uint8_t send_of(const message_id& id) { return static_cast<std::uint8_t>(id.number); }

std::uint8_t as_byte(std::size_t n) { return static_cast<std::uint8_t>(n); }

}  // namespace

const char* name_of(kind what) {
  constexpr const char* names[] = {"gradients", "quiet",   "failed",   "discover", "found",     "prune",
                                   "abort",     "aborted", "returned", "news",     "next_pass", "release",
                                   "lose",      "crash",   "cut",      "deadline", "leave"};
  return names[static_cast<std::size_t>(what)];
}

std::uint8_t graph::function(std::uint8_t node) {
  home.push_back(node);
  next.emplace_back();
  return as_byte(home.size() - 1);
}

graph& graph::connect(std::uint8_t from, std::uint8_t to, std::uint8_t tensor) {
  auto crosses = none;
  const auto of_recv = is_recv[to] ? bit(tensor) : tensors{0};
  if (home[from] != home[to]) {
    crosses = as_byte(sends.size());
    sends.push_back({home[to], to, of_recv});
  }
  next[from].push_back({to, crosses, of_recv});
  return *this;
}

graph& graph::message(std::uint8_t recv, std::uint8_t send) {
  is_recv[recv] = is_send[send] = true;
  next[recv].push_back({send, as_byte(sends.size())});
  sends.push_back({home[send], send});
  return *this;
}

graph& graph::unused(std::uint8_t target) {
  sends.push_back({home[target], target, is_recv[target] ? bit(0) : tensors{0}});
  return *this;
}

graph& graph::root(std::uint8_t f) {
  roots.push_back(f);
  return *this;
}

choice graph::reached() const {
  choice result;
  counts of_message = {};
  for (const auto root : roots) {
    result[root] = true;
    of_message[root] |= bit(0);
  }
  for (std::size_t f = 0; f < home.size(); ++f)  // edges lead to higher numbers
    for (std::size_t i = 0; result[f] && i < next[f].size(); ++i) {
      const auto& each = next[f][i];
      if (is_send[f] && (of_message[f] & bit(as_byte(i))) == 0) continue;
      result[each.to] = true;
      of_message[each.to] |= is_recv[f] ? of_message[f] : each.tensor;
    }
  return result;
}

choice graph::walked() const {
  choice result;
  auto open = roots;
  while (!open.empty()) {
    const auto f = open.back();
    open.pop_back();
    if (result[f]) continue;
    result[f] = true;
    for (const auto& each : next[f]) open.push_back(each.to);
  }
  return result;
}

graph::undropped graph::run_undropped() const {
  const auto from = reached();
  const auto planned = owed();
  auto owed_still = planned;
  for (const auto& root : roots) --owed_still[root];
  undropped result{{}, std::vector<bool>(sends.size(), true)};
  for (std::size_t f = 0; f < home.size(); ++f) {  // edges lead to higher numbers
    if (owed_still[f] > 0 || planned[f] == 0) continue;
    result.run[f] = from[f];
    for (const auto& each : next[f]) {  // a function that never runs says so
      --owed_still[each.to];
      if (each.send != none) result.waiting[each.send] = false;
    }
  }
  return result;
}

std::uint8_t graph::waiting_undropped() const {
  const auto waits = run_undropped().waiting;
  const auto from = walked();
  std::uint8_t found = bit(0);
  std::uint8_t waiting = 0;
  for (std::size_t f = 0; f < home.size(); ++f)
    if (from[f]) found |= bit(home[f]);
  for (std::size_t i = 0; i < sends.size(); ++i)
    if (waits[i]) waiting |= bit(sends[i].node);
  return found & waiting;
}

counts graph::owed() const {
  counts result = {};
  choice planned;
  auto open = roots;
  for (const auto& root : roots) ++result[root];
  for (const auto& each : sends) {
    ++result[each.target];
    open.push_back(each.target);
  }
  while (!open.empty()) {
    const auto f = open.back();
    open.pop_back();
    if (planned[f]) continue;
    planned[f] = true;
    for (const auto& each : next[f])
      if (each.send == none) {
        ++result[each.to];
        open.push_back(each.to);
      }
  }
  return result;
}

graph draw_graph(std::mt19937_64& random, std::size_t nodes, std::size_t functions, double unused, bool messages) {
  const auto below = [&](std::size_t n) { return random() % n; };
  graph result(as_byte(nodes));
  for (std::size_t f = 0; f < functions; ++f) result.function(as_byte(f == 0 ? 0 : below(nodes)));
  for (std::size_t f = 1; f + 1 < functions && messages; ++f) {
    if (below(4) != 0) continue;
    result.message(as_byte(f), as_byte(f + 1));
    ++f;
  }
  for (std::size_t f = 0; f + 1 < functions; ++f)
    for (std::size_t edges = result.is_recv[f] ? 0 : result.is_send[f] ? 2 : below(4); edges > 0; --edges) {
      const auto to = f + 1 + below(std::min<std::size_t>(functions - f - 1, 5));
      result.connect(as_byte(f), as_byte(result.is_send[to] ? to - 1 : to), as_byte(messages ? below(2) : 0));
    }
  result.root(0);
  for (std::size_t f = 1; f < functions; ++f)
    if (result.home[f] == 0 && below(6) == 0 && !result.is_send[f]) result.root(as_byte(f));
  for (std::size_t f = 0; f < functions; ++f)
    if (static_cast<double>(below(1000)) < unused * 1000 && !result.is_send[f]) result.unused(as_byte(f));
  for (std::uint8_t n = 1; n < nodes; ++n)
    if (below(4) != 0) result.joined(n, as_byte(below(n)));
  result.untold = as_byte(below(4) == 0 ? below(256) : 0);
  return result;
}

world::world(const graph& g, troubles allowed, std::uint8_t passes) : graph_(&g), left_(allowed), passes_(passes) {
  post({.what = kind::next_pass});
}

message_id world::id_of_send(std::uint8_t send) const { return {send, id_of_node(graph_->sends[send].node)}; }

graph& graph::joined(std::uint8_t node, std::uint8_t caller) {
  parent[node] = caller;
  return *this;
}

protocol::call_tree_position_ptr graph::position(std::uint8_t node) const {
  protocol::call_tree_position result;
  if (node != 0 && parent[node] != none && parent[node] != 0) result.parent = id_of_node(parent[node]);
  for (std::uint8_t n = 0; n < nodes; ++n)
    if (node != 0 && parent[n] == node && (untold & bit(n)) == 0) result.children.insert(id_of_node(n));
  return std::make_shared<const protocol::call_tree_position>(std::move(result));
}

// A message to a dead node, or to a node that the sender regards as down, is lost.
void world::post(event what) {
  if (nodes_[what.to].dead ||
      (what.from != what.to && (nodes_[what.from].gone & bit(what.to)) != 0 && what.what != kind::news)) {
    if (what.what != kind::release && what.pass < started_.size()) started_[what.pass].lossy = true;
    return;
  }
  bag_.emplace_back(std::move(what));
}

void world::start_pass() {
  if (left_early_ || nodes_[0].dead) return;
  const auto number = as_byte(started_.size());
  if (number == passes_) return release(0);
  if (number > 0) close(0, as_byte(number - 1U));  // the gradients of the earlier pass were taken
  pass next;
  for (std::uint8_t n = 0; n < graph_->nodes; ++n) next.states[n] = shared_value(model::node_state{});
  next.lossy = std::any_of(nodes_.begin(), nodes_.end(), [](const member& each) { return each.dead || each.cut != 0; });
  next.owed = graph_->owed();
  std::set<node_id> participants;
  for (std::uint8_t n = 0; n < graph_->nodes; ++n)
    if (!left_.strangers && (nodes_[0].gone & bit(n)) == 0) participants.insert(id_of_node(n));
  next.lead = shared_value(protocol::initiator(id_of_node(0), std::move(participants), !left_.fast));
  started_.push_back(std::move(next));
  begin(0, number);
  auto& mine = state_of(0, number);
  mine.roots_due = true;
  act(0, number, mine.protocol->start(protocol::whole_weight()));
}

void world::begin(std::uint8_t node, std::uint8_t number) {
  std::set<message_id> sends;
  for (std::uint8_t send = 0; send < graph_->sends.size(); ++send)
    if (graph_->sends[send].node == node) sends.insert(id_of_send(send));
  nodes_[node].current = as_byte(number + 1U);
  auto& mine = state_of(node, number);
  mine.protocol.emplace(std::move(sends), graph_->position(node), node == 0);
  mine.routed = true;
}

node_state& world::state_of(std::uint8_t node, std::uint8_t number) { return started_[number].states[node].change(); }

bool world::reaches(std::uint8_t from, std::uint8_t to) const { return from == to || (nodes_[from].gone & bit(to)) == 0; }

protocol::initiator* world::lead(std::uint8_t number) {
  auto& now = started_[number];
  return now.lead ? &now.lead.change() : nullptr;
}

protocol::participant* world::participant(std::uint8_t node, std::uint8_t number) {
  auto& mine = state_of(node, number);
  return mine.protocol ? &*mine.protocol : nullptr;
}

protocol::participant* world::routed(std::uint8_t node, std::uint8_t number) {
  return started_[number].states[node]->routed ? &*state_of(node, number).protocol : nullptr;
}

protocol::participant* world::join(std::uint8_t node, std::uint8_t number) {
  if (nodes_[node].current < number + 1) begin(node, number);
  return routed(node, number);
}

protocol::participant* world::skip(std::uint8_t node, std::uint8_t number) {
  nodes_[node].current = std::max(nodes_[node].current, as_byte(number + 1U));
  auto* mine = routed(node, number);
  if (mine != nullptr) state_of(node, number).routed = false;
  return mine;
}

void world::keep(const event& what) { state_of(what.to, what.pass).deliveries.emplace_back(send_of(what.send), what.reached); }

void world::free(std::uint8_t node, std::uint8_t number) {
  if (state_of(node, number).out) wrong_ = "an abort is answered while a task is away";
  forget(node, number);
}

void world::ended(std::uint8_t node, std::uint8_t number) {
  if (state_of(node, number).out) wrong_ = "a task that is away ends";
  state_of(node, number).protocol.reset();
}

void world::await_abort(std::uint8_t number, node_id who) { started_[number].aborts |= bit(number_of(who)); }

void world::gather(std::uint8_t node, std::uint8_t number) {
  auto& mine = state_of(node, number);
  if (!mine.protocol) return;
  mine.gathers = true;
  act(node, number, mine.protocol->gather());
}

void world::handed_out(std::uint8_t node, std::uint8_t number) {
  auto& mine = state_of(node, number);
  if (!std::exchange(mine.gathers, false)) wrong_ = "gradients are handed out for which nobody has asked";
  if (mine.out) wrong_ = "gradients are handed out while a task is away";
  if (!mine.protocol->over() && !mine.deliveries.empty()) wrong_ = "gradients are handed out before others are added";
}

void world::acted(std::uint8_t node, std::uint8_t number) {
  const auto& mine = *started_[number].states[node];
  if (mine.gathers && !mine.out && mine.protocol) wrong_ = "gradients are asked for, and nobody hands them out";
}

// A recv to which nothing leads tells the node that sent its tensors, unless a discovery has not found the recv.
void world::settle(pass& now, const model::node_state& mine, std::uint8_t function, bool given, tensors reached,
                   work& open) const {
  now.reached[function] |= reached;
  if (given) now.given[function] = true;
  if (--now.owed[function] > 0) return;
  if (now.given[function]) return open.ready.push_back(function);
  for (const auto& each : graph_->next[function])
    if (each.send == graph::none)
      settle(now, mine, each.to, false, 0, open);
    else if (!mine.has_walked || mine.walked[function])
      open.recvs.emplace_back(each.send, tensors{0});
}

void world::hand_on(pass& now, const model::node_state& mine, std::uint8_t function, work& open) const {
  for (std::size_t i = 0; i < graph_->next[function].size(); ++i) {
    const auto& each = graph_->next[function][i];
    const bool given = !graph_->is_send[function] || (now.reached[function] & bit(as_byte(i))) != 0;
    if (each.send == graph::none)
      settle(now, mine, each.to, given, given ? each.tensor : tensors{0}, open);
    else if (given)
      open.recvs.emplace_back(each.send, graph_->is_recv[function] ? now.reached[function] : all_tensors);
    else if (!mine.has_walked || mine.walked[function])
      open.recvs.emplace_back(each.send, tensors{0});
  }
}

// Runs the burst at once. Its messages and its return go into the bag, so they may come at any time.
void world::run(std::uint8_t node, std::uint8_t number, protocol::participant::run_burst& what) {
  auto& now = started_[number];
  auto& mine = state_of(node, number);
  if (std::exchange(mine.out, true)) wrong_ = "a task that is away runs";
  auto& share = what.share;
  event back{.what = kind::returned, .from = node, .to = node, .pass = number};
  work open;
  if (std::exchange(mine.roots_due, false))
    for (const auto root : graph_->roots) settle(now, mine, root, true, graph_->is_recv[root] ? bit(0) : tensors{0}, open);
  for (const auto& [send, reached] : std::exchange(mine.deliveries, {})) {
    const auto& [home, target, tensor] = graph_->sends[send];
    settle(now, mine, target, reached != 0, graph_->is_send[target] ? reached : reached != 0 ? tensor : tensors{0}, open);
  }
  for (const auto& send : what.drops) settle(now, mine, graph_->sends[send_of(send)].target, false, 0, open);
  for (std::size_t done = 0; done < open.ready.size() && !back.why; ++done) {
    const auto f = open.ready[done];
    if (++now.runs[f] > 1) wrong_ = "function " + std::to_string(f) + " runs twice in a pass";
    if (number == 0 && f == left_.throwing)
      back.why = protocol::failure{errc::function_failed, ""};
    else
      hand_on(now, mine, f, open);
  }
  const auto& recvs = open.recvs;
  for (std::size_t done = 0; done < recvs.size() && !back.why; ++done) {
    const auto to = graph_->sends[recvs[done].first].node;
    if (!reaches(node, to)) {
      back.why = protocol::failure{errc::peer_down, ""};
      break;
    }
    auto given = share.give(id_of_node(to), done + 1 < recvs.size());
    post({.what = kind::gradients,
          .from = node,
          .to = to,
          .pass = number,
          .send = id_of_send(recvs[done].first),
          .reached = recvs[done].second,
          .carried = std::move(given.carried),
          .answers = given.answers});
  }
  back.share = std::move(share);
  now.lossy |= back.why && (number != 0 || left_.throwing == graph::none);
  post(std::move(back));
}

void world::walk(std::uint8_t node, std::uint8_t number, const protocol::participant::run_walk& what) {
  auto& mine = state_of(node, number);
  if (std::exchange(mine.out, true)) wrong_ = "a task that is away walks";
  if (what.where == protocol::walk_from::roots && std::exchange(started_[number].discovered, true))
    wrong_ = "a second discovery in one pass";
  auto from = what.where == protocol::walk_from::roots ? graph_->roots : std::vector<std::uint8_t>();
  for (const auto& send : what.sends) from.push_back(graph_->sends[send_of(send)].target);
  std::vector<message_id> ids;
  mine.has_walked = true;
  choice walked;
  while (!from.empty()) {
    const auto f = from.back();
    from.pop_back();
    if (walked[f]) continue;
    walked[f] = true;
    mine.walked[f] = true;
    for (const auto& each : graph_->next[f])
      if (each.send != graph::none)
        ids.push_back(id_of_send(each.send));
      else
        from.push_back(each.to);
  }
  std::sort(ids.begin(), ids.end());
  post({.what = kind::returned, .from = node, .to = node, .pass = number, .ids = std::move(ids)});
}

// Checks that all used functions have run, and that the named nodes are the ones whose sends wait.
void world::unused(std::uint8_t number, const std::vector<node_id>& on) {
  auto& now = started_[number];
  std::uint8_t named = 0;
  for (const auto who : on) named |= bit(number_of(who));
  if (named != graph_->waiting_undropped()) wrong_ = "other nodes are named than those with unused sends";
  check_runs(now, graph_->run_undropped().run);
  now.unused = true;
}

void world::check_runs(const pass& now, const choice& expected) {
  for (std::size_t f = 0; f < graph_->home.size(); ++f)
    if (now.runs[f] != (expected[f] ? 1 : 0))
      wrong_ = "all has come home, and function " + std::to_string(f) + " ran " + std::to_string(now.runs[f]) + " times";
}

void world::complete(std::uint8_t number, const std::vector<node_id>& not_done) {
  auto& now = started_[number];
  std::uint8_t named = 0;
  for (const auto who : not_done) named |= bit(number_of(who));
  const std::uint8_t most = now.late ? now.aborts | nodes_[0].gone : 0;
  if ((named & ~most) != 0 || (now.late && (now.aborts & ~named) != 0))
    wrong_ = "other nodes are named than those that are not done";
  if (now.lead->result()) {
    ++failures_;
    if (!now.lossy) check_abort(number);
    now.lossy = true;
  } else {
    ++succeeded_;
    check_runs(now, graph_->reached());
    if (left_.fast && graph_->waiting_undropped() != 0) wrong_ = "a pass in fast mode succeeds with an unused send";
  }
  post({.what = kind::next_pass, .pass = number});
}

// If all nodes are there and every message arrives, an abort reaches everything that the pass has reached.
void world::check_abort(std::uint8_t number) {
  for (std::uint8_t n = 1; n < graph_->nodes; ++n) {
    const auto& state = *started_[number].states[n];
    if (state.protocol && !state.protocol->over()) wrong_ = "the pass has failed, and goes on on node " + std::to_string(n);
  }
  for (const auto& each : bag_)
    if (each->what == kind::gradients && each->pass == number && nodes_[each->to].current <= number)
      wrong_ = "the pass has failed, and gradients begin it on node " + std::to_string(each->to);
}

void world::take(const step& next) {
  switch (next.what) {
    case kind::lose: {
      const auto& lost = *bag_[next.position];
      const bool severed = nodes_[lost.from].dead || (nodes_[lost.to].cut & bit(lost.from)) != 0;
      if (!severed) --left_.losses;
      if (lost.what != kind::release) {
        started_[lost.pass].lossy = true;
        started_[lost.pass].vanished |= !severed;
      }
      bag_.erase(bag_.begin() + static_cast<std::ptrdiff_t>(next.position));
      return;
    }
    case kind::crash:
      --left_.crashes;
      nodes_[next.a].dead = true;
      std::erase_if(bag_, [&](const auto& each) { return each->to == next.a; });
      for (auto& each : started_) each.lossy = true;
      for (std::uint8_t n = 0; n < graph_->nodes; ++n) post({.what = kind::news, .from = next.a, .to = n});
      return;
    case kind::cut:
      --left_.cuts;
      for (auto& each : started_) each.lossy = true;
      nodes_[next.a].cut |= bit(next.b);
      nodes_[next.b].cut |= bit(next.a);
      post({.what = kind::news, .from = next.a, .to = next.b});
      post({.what = kind::news, .from = next.b, .to = next.a});
      return;
    case kind::deadline: {
      if (left_.deadlines > 0) --left_.deadlines;
      const auto number = as_byte(started_.size() - 1);
      auto& lead = started_.back().lead.change();
      started_.back().lossy = true;
      started_.back().late |= !lead.aborting();
      return act(number, lead.deadline_passed(""));
    }
    case kind::leave:
      --left_.releases;
      left_early_ = true;
      return release(0);
    default: {
      auto what = std::move(bag_[next.position]);
      bag_.erase(bag_.begin() + static_cast<std::ptrdiff_t>(next.position));
      happen(what.change());
    }
  }
}

void world::happen(event& what) {
  switch (what.what) {
    case kind::next_pass:
      return start_pass();
    case kind::news:
      return heard(what.to, what.from);
    case kind::release:
      return release(what.to);
    case kind::returned:
      state_of(what.to, what.pass).out = false;
      return handle(what);
    case kind::aborted:
      if (what.settled) started_[what.pass].aborts &= as_byte(~bit(what.from));
      return handle(what);
    default:
      return handle(what);
  }
}

void world::heard(std::uint8_t node, std::uint8_t about) {
  nodes_[node].gone |= bit(about);
  if (about == 0) return release(node);
  for (std::uint8_t number = 0; number < started_.size(); ++number) hear(node, number, about);
}

void world::release(std::uint8_t node) {
  if (std::exchange(nodes_[node].released, true)) return;
  for (std::uint8_t number = 0; number < started_.size(); ++number) {
    if (node == 0) {
      started_[number].lead.reset();
      started_[number].lossy = true;
    }
    close(node, number);
  }
  if (node == 0)
    for (std::uint8_t n = 1; n < graph_->nodes; ++n) post({.what = kind::release, .to = n});
}

bool world::settled() const {
  return nodes_[0].dead || nodes_[0].released || started_.empty() || !started_.back().lead ||
         started_.back().lead->is_complete();
}

std::vector<step> world::outside() const {
  std::vector<step> result;
  const bool over = settled();
  if (left_.crashes > 0)
    for (std::uint8_t n = 0; n < graph_->nodes; ++n)
      if (!nodes_[n].dead && !nodes_[n].released) result.push_back({.what = kind::crash, .a = n});
  if (left_.cuts > 0)
    for (std::uint8_t n = 0; n < graph_->nodes; ++n)
      for (std::uint8_t m = as_byte(n + 1U); m < graph_->nodes; ++m)
        if (!nodes_[n].dead && !nodes_[m].dead && (nodes_[n].cut & bit(m)) == 0)
          result.push_back({.what = kind::cut, .a = n, .b = m});
  const bool stuck = bag_.empty() && !over && started_.back().vanished;
  if (!over && (left_.deadlines > 0 || stuck)) result.push_back({.what = kind::deadline});
  if (!over && left_.releases > 0) result.push_back({.what = kind::leave});
  return result;
}

std::vector<step> world::steps() const {
  auto result = outside();
  for (std::size_t i = 0; i < bag_.size(); ++i) {
    const auto& each = *bag_[i];
    result.push_back({.what = each.what, .a = each.from, .b = each.to, .position = i});
    const bool local = each.from == each.to || each.what == kind::news || each.what == kind::next_pass;
    const bool severed = nodes_[each.from].dead || (nodes_[each.to].cut & bit(each.from)) != 0;
    if (!local && (severed || (left_.losses > 0 && each.what != kind::release)))
      result.push_back({.what = kind::lose, .a = each.from, .b = each.to, .position = i});
  }
  return result;
}

bool world::take_any(std::mt19937_64& random) {
  const auto from_outside = bag_.empty() || random() % 16 == 0;
  if (from_outside) {
    const auto all = steps();
    if (all.empty()) return false;
    take(all[random() % all.size()]);
    return true;
  }
  if (random() % 64 == 0 && !started_.empty()) {
    const auto node = as_byte(random() % graph_->nodes);  // before the next draw: a seed is one life with any compiler
    gather(node, as_byte(random() % started_.size()));
  }
  if (bag_.empty()) return true;
  const auto position = random() % bag_.size();
  take({.what = bag_[position]->what, .a = 0, .b = 0, .position = position});
  return true;
}

namespace {

// The digest of a set is a sum, because the order of a set does not matter.
class digest {
 public:
  template <class T>
  digest& operator<<(const T& value) {
    if constexpr (std::is_same_v<T, weight_share>)
      add(value);
    else if constexpr (requires { value.has_value(); })
      value ? *this << true << *value : *this << false;
    else if constexpr (requires { value.begin(); })
      add_all(value);
    else if constexpr (requires { value.first; })
      *this << value.first << value.second;
    else if constexpr (std::is_same_v<T, message_id>)
      word(value.number);
    else if constexpr (std::is_same_v<T, node_id>)
      word(value.value);
    else if constexpr (std::is_same_v<T, protocol::failure>)
      word(1);
    else if constexpr (std::is_same_v<T, protocol::burst_share>)  // `position` never changes
      *this << value.carried << value.settles << value.answers << value.sent << value.answered;
    else if constexpr (requires { value.sent; })
      *this << value.sent << value.answered;
    else
      word(static_cast<std::uint64_t>(value));
    return *this;
  }
  std::uint64_t value() const { return sum_; }

 private:
  void word(std::uint64_t w) { sum_ = hash_words(sum_ + 0x9e3779b97f4a7c15ULL, w + 1) * 0x94d049bb133111ebULL; }
  template <class All>
  void add_all(const All& all) {
    std::uint64_t sum = 0;
    for (const auto& each : all) sum += (digest() << each).value();
    word(sum);
  }
  // The digest uses only whether the share has weight. How the weight was split has no effect on what follows. Whether the
  // whole weight is there follows from the rest of the world.
  void add(const weight_share& from) {
    word(from.weight.empty() ? 0 : 1);
    word(from.begun);
    word(from.settled);
  }

  std::uint64_t sum_ = 0x6a09e667f3bcc909ULL;
};

template <class Tuple>
void add_fields(digest& into, const Tuple& fields) {
  std::apply([&](const auto&... each) { (into << ... << each); }, fields);
}

std::uint64_t digest_of(const event& each) {
  digest result;
  result << each.what << each.from << each.to << each.pass << each.send << each.reached << each.carried << each.ids
         << each.sent_to << each.answers << each.settled << each.why << each.share;
  return result.value();
}

std::uint64_t digest_of(const model::node_state& mine) {
  digest result;
  result << mine.protocol.has_value() << mine.deliveries << mine.roots_due << mine.routed << mine.has_walked
         << mine.walked.to_ulong();
  if (mine.protocol) add_fields(result, mine.protocol->state());
  return result.value();
}

std::uint64_t digest_of(const protocol::initiator& lead) {
  digest result;
  add_fields(result, lead.state());
  return result.value();
}

// Positions matter here. Eight numbers make one word.
void add_in_order(digest& into, const counts& all, std::size_t size) {
  for (std::size_t first = 0; first < size; first += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, &all[first], sizeof word);
    into << word;
  }
}

constexpr auto to_digest = [](const auto& value) { return digest_of(value); };

// The powers of two in a pass's weight, counted by exponent.
class weight_sum {
 public:
  void add(const weight_share& share) {
    for (const auto exponent : share.weight) {
      if (exponent >= powers_.size()) powers_.resize(exponent + 1);
      ++powers_[exponent];
    }
  }
  // Two equal powers make one power of twice the weight.
  bool is_whole() {
    for (auto exponent = powers_.size() - 1; exponent > 0; --exponent) {
      if (powers_[exponent] % 2 != 0) return false;
      powers_[exponent - 1] += powers_[exponent] / 2;
    }
    return powers_[0] == 1;
  }

 private:
  std::vector<std::size_t> powers_ = std::vector<std::size_t>(16);
};

}  // namespace

std::uint64_t world::hash() const {
  digest result;
  result << left_.losses << left_.crashes << left_.cuts << left_.deadlines << left_.releases << succeeded_ << failures_
         << left_early_;
  for (std::uint8_t n = 0; n < graph_->nodes; ++n) {
    const auto& each = nodes_[n];
    result << each.dead << each.released << each.current << each.gone << each.cut;
  }
  for (const auto& now : started_) {
    result << now.lossy << now.vanished << now.discovered << now.unused << static_cast<bool>(now.lead);
    if (now.lead) result << now.lead.digest(to_digest);
    if (now.lead && now.lossy) result << has_all_weight(now);
    for (std::uint8_t n = 0; n < graph_->nodes; ++n) result << now.states[n].digest(to_digest);
    add_in_order(result, now.owed, graph_->home.size());
    add_in_order(result, now.runs, graph_->home.size());
    add_in_order(result, now.reached, graph_->home.size());
    result << now.given.to_ulong();
  }
  std::uint64_t sum = 0;
  for (const auto& each : bag_) sum += each.digest(to_digest);
  result << sum;
  return result.value();
}

bool world::has_all_weight(const pass& now) const {
  weight_sum all;
  if (now.lead) all.add(std::get<1>(now.lead->state()));
  for (std::uint8_t n = 0; n < graph_->nodes; ++n)
    if (now.states[n]->protocol) all.add(std::get<1>(now.states[n]->protocol->state()));
  const auto number = static_cast<std::size_t>(&now - started_.data());
  for (const auto& each : bag_)
    if (each->pass == number) {
      all.add(each->carried);
      if (each->share) all.add(each->share->carried);
    }
  return all.is_whole();
}

std::string world::wrong_now() const {
  if (!wrong_.empty()) return wrong_;
  for (const auto& now : started_) {
    if (!now.lossy && left_.throwing == graph::none && now.lead && !now.lead->result() && !has_all_weight(now))
      return "weight is lost or made";
    if (!now.lossy && !now.unused && now.lead && now.lead->result() && left_.throwing == graph::none)
      return "the pass fails without a cause: " + now.lead->result()->text;
  }
  return {};
}

std::string world::wrong_at_end() const {
  if (!settled()) return "the pass never ends";
  for (std::uint8_t n = 0; n < graph_->nodes; ++n) {
    if (nodes_[n].dead) continue;
    if (!nodes_[n].released) return "the context is left on node " + std::to_string(n);
    for (const auto& now : started_)
      if (now.states[n]->protocol) return "a task is left on node " + std::to_string(n);
  }
  if (succeeded_ + failures_ < passes_ && !left_early_ && !nodes_[0].dead) return "a pass is missing";
  return {};
}

}  // namespace troupe::model
