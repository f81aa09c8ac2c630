// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/participant.hpp>
#include <troupe/engine/protocol/purse.hpp>

/// A distributed pass over a random graph, with the protocol's own state machines and a network that delivers in any order.
namespace simulated {

using namespace troupe;

/// A graph of functions over nodes. An edge between functions of two nodes is a send and a recv with one message id.
struct graph {
  struct edge {
    std::size_t to;
    std::optional<message_id> crosses;  // set: the functions are on two nodes
  };
  struct dangling {
    message_id send;
    std::size_t to;
  };
  std::vector<std::size_t> home;            // node of a function
  std::vector<std::vector<edge>> next;      // always to higher numbers
  std::vector<std::size_t> roots;           // on node 0
  std::vector<dangling> unused;             // sends that no recv answers
  std::size_t nodes = 0;
};

inline node_id name_of(std::size_t node) {
  return {node + 1};
}

inline std::size_t number_of(node_id id) {
  return id.value - 1;
}

inline graph draw(std::mt19937_64& random, std::size_t nodes, std::size_t functions, double unused) {
  auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  graph result;
  result.nodes = nodes;
  result.next.resize(functions);
  std::uint64_t messages = 0;
  for (std::size_t f = 0; f < functions; ++f)
    result.home.push_back(f == 0 ? 0 : below(nodes));
  for (std::size_t f = 0; f + 1 < functions; ++f)
    for (std::size_t edges = below(4); edges > 0; --edges) {
      auto to = f + 1 + below(std::min<std::size_t>(functions - f - 1, 5));
      std::optional<message_id> crosses;
      if (result.home[f] != result.home[to])
        crosses = message_id{++messages, name_of(result.home[to])};
      result.next[f].push_back({to, crosses});
    }
  result.roots.push_back(0);
  for (std::size_t f = 1; f < functions; ++f)
    if (result.home[f] == 0 && below(6) == 0)
      result.roots.push_back(f);
  for (std::size_t f = 0; f < functions; ++f)
    if (std::uniform_real_distribution<>()(random) < unused)
      result.unused.push_back({{++messages, name_of(result.home[f])}, f});
  return result;
}

/// Functions that gradients reach from the roots.
inline std::set<std::size_t> reached(const graph& g) {
  std::set<std::size_t> result;
  std::vector<std::size_t> open = g.roots;
  while (!open.empty()) {
    auto f = open.back();
    open.pop_back();
    if (result.insert(f).second)
      for (const auto& edge : g.next[f])
        open.push_back(edge.to);
  }
  return result;
}

/// A stand-in for engine::graph_task that only counts.
class counting_task {
 public:
  counting_task(const graph& g, std::size_t node) : graph_(g), node_(node) {
    std::vector<std::size_t> open;
    if (node == 0)
      open = g.roots;
    for (std::size_t f = 0; f < g.home.size(); ++f)
      for (const auto& edge : g.next[f])
        if (edge.crosses && g.home[edge.to] == node)
          add_send(*edge.crosses, edge.to, open);
    for (const auto& each : g.unused)
      if (g.home[each.to] == node)
        add_send(each.send, each.to, open);
    std::set<std::size_t> planned;
    while (!open.empty()) {
      auto f = open.back();
      open.pop_back();
      if (!planned.insert(f).second)
        continue;
      for (const auto& edge : g.next[f])
        if (!edge.crosses) {
          ++owed_[edge.to];
          open.push_back(edge.to);
        }
    }
    for (const auto& [send, to] : sends_)
      ++owed_[to];
    if (node == 0)
      for (auto root : g.roots) {
        ++owed_[root];
        settle(root, true);
      }
  }

  std::set<message_id> sends() const {
    std::set<message_id> result;
    for (const auto& [send, to] : sends_)
      result.insert(send);
    return result;
  }

  void deliver(message_id send) { settle(sends_.at(send), true); }
  void drop(message_id send) { settle(sends_.at(send), false); }

  /// Runs what is ready; `emit(message, more)` for every edge that leaves the node.
  template <class Emit>
  void run(std::vector<int>& runs, Emit&& emit) {
    while (!ready_.empty()) {
      auto f = ready_.front();
      ready_.pop_front();
      if (f.recv) {
        emit(*f.recv, !ready_.empty());
        continue;
      }
      ++runs[f.function];
      for (const auto& edge : graph_.next[f.function])
        if (edge.crosses)
          ready_.push_back({0, edge.crosses});
        else
          settle(edge.to, true);
    }
  }

  std::vector<message_id> walk(std::vector<std::size_t> from) {
    std::vector<message_id> recvs;
    while (!from.empty()) {
      auto f = from.back();
      from.pop_back();
      if (!walked_.insert(f).second)
        continue;
      for (const auto& edge : graph_.next[f])
        if (edge.crosses)
          recvs.push_back(*edge.crosses);
        else
          from.push_back(edge.to);
    }
    return recvs;
  }

  std::vector<message_id> walk_sends(const std::vector<message_id>& sends) {
    std::vector<std::size_t> from;
    for (auto send : sends)
      from.push_back(sends_.at(send));
    return walk(std::move(from));
  }

 private:
  struct item {
    std::size_t function;
    std::optional<message_id> recv;
  };

  void add_send(message_id send, std::size_t to, std::vector<std::size_t>& open) {
    sends_.emplace(send, to);
    open.push_back(to);
  }

  void settle(std::size_t f, bool delivered) {
    std::vector<std::pair<std::size_t, bool>> open{{f, delivered}};
    while (!open.empty()) {
      auto [g, given] = open.back();
      open.pop_back();
      live_[g] = live_[g] || given;
      if (--owed_[g] > 0)
        continue;
      if (live_[g])
        ready_.push_back({g, std::nullopt});
      else
        for (const auto& edge : graph_.next[g])
          if (!edge.crosses)
            open.emplace_back(edge.to, false);
    }
  }

  const graph& graph_;
  std::size_t node_;
  std::map<message_id, std::size_t> sends_;
  std::map<std::size_t, int> owed_;
  std::map<std::size_t, bool> live_;
  std::deque<item> ready_;
  std::set<std::size_t> walked_;
};

/// What may go wrong in a run; each at most once.
struct trouble {
  std::optional<std::size_t> function_throws;  // this function
  std::optional<std::size_t> node_dies;        // this node (not 0), at a random moment
  bool deadline = false;                       // the initiator's, at a random moment
};

/// Runs one pass to its end. Events wait in one bag and are taken in random order.
class pass {
 public:
  pass(const graph& g, std::mt19937_64& random, trouble what) : runs(g.home.size()), graph_(g), random_(random), trouble_(what) {
    std::set<node_id> participants;
    for (std::size_t n = 0; n < g.nodes; ++n)
      participants.insert(name_of(n));
    nodes_.resize(g.nodes);
    lead_ = std::make_unique<protocol::initiator>(name_of(0), participants);
    join(0);
    act(0, nodes_[0].part->start(protocol::whole_purse()));
    if (trouble_.node_dies)
      bag_.push_back(died{*trouble_.node_dies});
    if (trouble_.deadline)
      bag_.push_back(timed_out{});
  }

  /// False if nothing is left to happen and the pass has not ended: it would hang.
  bool run_to_end() {
    while (!bag_.empty()) {
      auto at = std::uniform_int_distribution<std::size_t>(0, bag_.size() - 1)(random_);
      std::swap(bag_[at], bag_.back());
      auto next = std::move(bag_.back());
      bag_.pop_back();
      std::visit([this](auto& event) { handle(event); }, next);
    }
    return lead_->complete();
  }

  const protocol::initiator& lead() const { return *lead_; }
  bool all_idle() const {
    return std::none_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return !n.dead && n.part && n.part->away(); });
  }
  std::size_t discoveries = 0;
  std::vector<int> runs;

 private:
  struct gradients {
    message_id send;
    purse carried;
  };
  struct returned {
    std::size_t node;
    purse left;
    bool failed;
    bool walk;
    std::vector<message_id> recvs;
  };
  struct quiet {
    purse carried;
  };
  struct failed {
    std::size_t node;
    errc code;
  };
  struct discover {
    std::size_t node;
    std::vector<message_id> sends;
  };
  struct found {
    std::vector<message_id> recvs;
  };
  struct prune {
    std::size_t node;
    protocol::initiator::pruned terms;
  };
  struct abort {
    std::size_t node;
  };
  struct aborted {
    std::size_t node;
  };
  struct died {
    std::size_t node;
  };
  struct died_news {
    std::size_t node;
  };
  struct timed_out {};
  using event = std::variant<gradients, returned, quiet, failed, discover, found, prune, abort, aborted, died, died_news, timed_out>;

  struct member_state {
    std::unique_ptr<counting_task> task;
    std::optional<protocol::participant> part;
    std::vector<message_id> deliveries;
    std::vector<message_id> drops;
    std::set<node_id> sent_to;
    bool dead = false;
    bool aborted = false;
  };

  member_state& join(std::size_t n) {
    auto& node = nodes_[n];
    if (!node.part) {
      node.task = std::make_unique<counting_task>(graph_, n);
      node.part.emplace(name_of(n), node.task->sends());
    }
    return node;
  }

  void act(std::size_t n, protocol::participant::steps steps) {
    auto& node = nodes_[n];
    node.drops.insert(node.drops.end(), steps.drop.begin(), steps.drop.end());
    if (steps.start_burst)
      burst(n);
    if (steps.quiet)
      bag_.push_back(quiet{std::move(*steps.quiet)});
    if (steps.failure)
      bag_.push_back(failed{n, errc::invalid_gradient});
    if (steps.answer_abort)
      bag_.push_back(aborted{n});
  }

  void burst(std::size_t n) {
    auto& node = nodes_[n];
    auto terms = node.part->take_burst();
    for (auto send : std::exchange(node.deliveries, {}))
      node.task->deliver(send);
    for (auto send : std::exchange(node.drops, {}))
      node.task->drop(send);
    auto before = trouble_.function_throws ? runs[*trouble_.function_throws] : 0;
    node.task->run(runs, [&](message_id to, bool more) {
      node.sent_to.insert(to.node);
      if (!more && terms.settles)
        protocol::merge(terms.carried, {.weight = {}, .begun = {}, .settled = {name_of(n)}});
      bag_.push_back(gradients{to, more ? protocol::split(terms.carried) : protocol::take(terms.carried)});
    });
    bool throws = trouble_.function_throws && runs[*trouble_.function_throws] != before;
    bag_.push_back(returned{n, std::move(terms.carried), throws, false, {}});
  }

  void act(protocol::initiator::steps steps) {
    if (steps.walk_roots) {
      ++discoveries;
      nodes_[0].part->begin_walk();
      bag_.push_back(returned{0, {}, false, true, nodes_[0].task->walk(graph_.roots)});
    }
    for (auto& [who, sends] : steps.discover)
      bag_.push_back(discover{number_of(who), sends});
    for (auto& [who, terms] : steps.prune)
      bag_.push_back(prune{number_of(who), terms});
    for (auto who : steps.abort)
      bag_.push_back(abort{number_of(who)});
  }

  void handle(gradients& e) {
    auto n = number_of(e.send.node);
    if (nodes_[n].dead || nodes_[n].aborted)
      return;
    auto& node = join(n);
    if (!node.part->over())
      node.deliveries.push_back(e.send);
    act(n, node.part->gradients(e.send, std::move(e.carried)));
  }
  void handle(returned& e) {
    auto& node = nodes_[e.node];
    if (node.dead)
      return;
    if (e.failed) {
      auto was_over = node.part->over();
      act(e.node, node.part->burst_failed());
      if (!was_over)
        bag_.push_back(failed{e.node, errc::function_failed});
      return;
    }
    act(e.node, node.part->burst_ended(std::move(e.left)));
    if (e.walk && e.node == 0 && root_walk_)
      root_walk_ = false, act(lead_->found(e.recvs));
    else if (e.walk)
      bag_.push_back(found{std::move(e.recvs)});
  }
  void handle(quiet& e) { act(lead_->quiet(std::move(e.carried))); }
  void handle(failed& e) { act(lead_->failed(name_of(e.node), e.code, "")); }
  void handle(discover& e) {
    auto& node = nodes_[e.node];
    if (node.dead)
      return;
    if (node.aborted || (node.part && node.part->over())) {
      bag_.push_back(failed{e.node, errc::pass_aborted});
      return;
    }
    auto& member = join(e.node);
    member.part->begin_walk();
    bag_.push_back(returned{e.node, {}, false, true, member.task->walk_sends(e.sends)});
  }
  void handle(found& e) { act(lead_->found(e.recvs)); }
  void handle(prune& e) {
    if (nodes_[e.node].dead || nodes_[e.node].aborted)
      return;
    auto& node = join(e.node);
    act(e.node, node.part->prune({e.terms.live.begin(), e.terms.live.end()}, std::move(e.terms.carried)));
  }
  void handle(abort& e) {
    auto& node = nodes_[e.node];
    if (node.dead)
      return;
    node.aborted = true;
    if (node.part)
      act(e.node, node.part->abort());
    else
      bag_.push_back(aborted{e.node});
  }
  void handle(aborted& e) {
    const auto& sent = nodes_[e.node].sent_to;
    act(lead_->aborted(name_of(e.node), {sent.begin(), sent.end()}));
  }
  void handle(died& e) {
    nodes_[e.node].dead = true;
    bag_.push_back(died_news{e.node});
  }
  void handle(died_news& e) { act(lead_->peer_down(name_of(e.node), "died")); }
  void handle(timed_out&) {
    if (!lead_->complete())
      act(lead_->failed(name_of(0), errc::deadline_passed, ""));
  }

  const graph& graph_;
  std::mt19937_64& random_;
  trouble trouble_;
  std::vector<member_state> nodes_;
  std::unique_ptr<protocol::initiator> lead_;
  std::vector<event> bag_;
  bool root_walk_ = true;
};

}  // namespace simulated
