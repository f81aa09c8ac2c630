// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/protocol/exploration_test.cpp, tests/simulation/pass_model_test.cpp
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/engine/protocol/initiator.hpp>
#include <troupe/engine/protocol/participant.hpp>
#include <troupe/engine/protocol/weight_throwing.hpp>
#include <troupe/messages/ids.hpp>

/// What simulations share.
namespace troupe::simulation {

/// What is under way in a simulated pass.
enum class kind : std::uint8_t {
  gradients,
  quiet,
  failed,
  discover,
  found,
  prune,
  abort,
  aborted,  // the kinds up to here are messages between nodes
  returned,
  news,
  next_pass,
  release,  // the kinds up to here are in the bag of an exploration
  lose,
  crash,
  cut,
  deadline,
  leave  // the kinds from lose on may happen at any time in an exploration
};

/// A message under way, a burst or a walk that is away, or an action of a user or of the environment.
template <class Number>
struct event {
  kind what;
  Number from = 0;
  Number to = 0;
  std::uint8_t pass = 0;
  message_id send = {};      // for `gradients`
  std::uint8_t reached = 0;  // for `gradients`: tensors of the send that functions of the pass lead to, as bits
  weight_share carried = {};
  std::vector<message_id> ids = {};
  std::vector<node_id> sent_to = {};  // for `aborted`
  std::uint32_t answers = 0;
  bool settled = false;                             // for `found` and `aborted`
  std::optional<protocol::failure> why = {};        // for `failed` and `returned`
  std::optional<protocol::burst_share> share = {};  // for `returned`: of a burst; a walk has none
};

/// Graph tasks, context records and gateways of simulated nodes, as far as a pass needs them: hands messages to the participants and the
/// initiator, and carries out what these decide. Node 0 starts the passes. Passes have numbers from 0 on. `World` derives from this class and has:
///   post(event)                   sends a message; reaches(from, to): whether the one node holds the other for up
///   id_of(node), number_of(id)    parent_of(node): in the tree of calls
///   lead(pass)                    the initiator; null if the context was released on node 0
///   participant(node, pass)       the participant; null if the node has none
///   routed(node, pass)            the participant, if the context routes messages to it; otherwise null
///   join(node, pass)              as routed(); makes a participant where the pass is new
///   skip(node, pass)              as routed(); from now on the context routes nothing to it, and makes no participant
///   is_released(node)             whether the node has released the context
///   keep(event), forget(...)      gradients that wait for the next burst; they are of no use any more
///   run(...), walk(...)           a burst or a walk, which come back as `returned`; stop(...): the burst shall end soon
///   free(node, pass)              the buffers of the engine's graph task, which is not away
///   ended(node, pass)             the participant is done and goes
///   unused(pass, nodes), complete(pass, not_done), await_abort(pass, who), await_aborts(pass)
///   handed_out(node, pass)        the gradients of the leaves, for which somebody has asked
///   acted(node, pass), acted(pass)    for checks: the effects of an event are carried out
///   prunes(pass)                  for checks: the initiator prunes
template <class World, class Number>
class pass_carrier {
 protected:
  using event = simulation::event<Number>;
  using pass_index = std::uint8_t;

  void act(Number node, pass_index pass, protocol::participant::effects effects) {
    for (auto& each : effects) std::visit([&](auto& what) { carry_out(node, pass, what); }, each);
    world().acted(node, pass);
  }
  void act(pass_index pass, protocol::initiator::effects effects) {
    for (auto& each : effects) std::visit([&](auto& what) { carry_out(pass, what); }, each);
    world().acted(pass);
  }

  /// A message arrives, or a burst or a walk comes back.
  void handle(event& what) {
    const auto node = what.to;
    const auto pass = what.pass;
    switch (what.what) {
      case kind::gradients:
        if (world().is_released(node)) return refuse(what);
        if (auto* mine = world().join(node, pass)) {
          world().keep(what);
          auto effects = mine->gradients(what.send, std::move(what.carried), {world().id_of(what.from), what.answers});
          if (mine->over()) world().forget(node, pass);
          act(node, pass, std::move(effects));
        }
        return;
      case kind::prune:
        if (world().is_released(node)) return refuse(what);
        if (auto* mine = world().join(node, pass))
          act(node, pass, mine->prune({what.ids.begin(), what.ids.end()}, std::move(what.carried)));
        return;
      case kind::discover: {
        auto* mine = world().is_released(node) ? nullptr : world().join(node, pass);
        if (mine == nullptr || mine->over())
          return fail(node, 0, pass, {errc::pass_aborted, "the pass is over on a node that was asked"});
        return act(node, pass, mine->discover(what.ids));
      }
      case kind::abort: {
        // The initiator asks its own graph task, and the context does not hear of it.
        auto* mine = node == 0 ? world().participant(node, pass) : world().skip(node, pass);
        if (mine != nullptr) return act(node, pass, mine->abort());
        if (node != 0) world().post({.what = kind::aborted, .from = node, .pass = pass, .settled = true});
        return;
      }
      case kind::quiet:
        if (node == 0) {
          if (auto* lead = world().lead(pass)) act(pass, lead->quiet(std::move(what.carried)));
        } else if (auto* mine = world().routed(node, pass)) {
          act(node, pass, mine->reported(std::move(what.carried), {world().id_of(what.from), what.answers}));
        }
        return;
      case kind::failed:
        if (node == 0) {
          if (auto* lead = world().lead(pass))
            act(pass, lead->failed(world().id_of(what.from), what.why->code, what.why->text));
        } else if (world().routed(node, pass) != nullptr) {  // from a node that can't reach the initiator: passed on
          fail(node, 0, pass, std::move(*what.why));
        }
        return;
      case kind::found:
        if (auto* lead = world().lead(pass)) act(pass, lead->found(world().id_of(what.from), what.ids, what.settled));
        return;
      case kind::aborted:
        if (auto* lead = world().lead(pass)) act(pass, lead->aborted(world().id_of(what.from), what.sent_to, what.settled));
        return;
      case kind::returned: {
        auto* mine = world().participant(node, pass);
        return act(
          node, pass,
          what.share ? mine->returned(std::move(*what.share), std::move(what.why)) : mine->walked(std::move(what.ids)));
      }
      default:
        return;
    }
  }

  /// The node hears that another one is down.
  void hear(Number node, pass_index pass, Number down) {
    const auto who = world().id_of(down);
    if (auto* lead = node == 0 ? world().lead(pass) : nullptr)
      act(pass, lead->peer_down(who, "a node went down during backward"));
    if (auto* mine = world().routed(node, pass))
      act(node, pass, mine->peer_down(who, "a node to which gradients were sent went down"));
  }

  /// The context is released on the node.
  void close(Number node, pass_index pass) {
    if (auto* mine = world().skip(node, pass)) act(node, pass, mine->close(world().reaches(node, 0)));
  }

 private:
  using in = protocol::participant;
  using of = protocol::initiator;

  World& world() { return static_cast<World&>(*this); }

  void carry_out(Number node, pass_index pass, in::run_burst& what) { world().run(node, pass, what); }
  void carry_out(Number node, pass_index pass, in::run_walk& what) { world().walk(node, pass, what); }
  void carry_out(Number node, pass_index pass, in::stop_burst&) { world().stop(node, pass); }
  /// To the parent, which takes part in the pass, or to the initiator.
  void carry_out(Number node, pass_index pass, in::report_quiet& what) {
    if (node == 0) {
      if (auto* lead = world().lead(pass)) act(pass, lead->quiet(std::move(what.carried)));
      return;
    }
    const auto parent = world().parent_of(node);
    const bool to_parent = what.to_parent && world().reaches(node, parent);
    if (to_parent || !protocol::is_empty(what.carried))
      world().post({.what = kind::quiet,
                    .from = node,
                    .to = to_parent ? parent : Number{0},
                    .pass = pass,
                    .carried = std::move(what.carried),
                    .answers = what.answers});
  }
  void carry_out(Number node, pass_index pass, in::report_failure& what) { fail(node, 0, pass, std::move(what.why)); }
  void carry_out(Number node, pass_index pass, in::answer_discover& what) {
    for (; what.questions > 0; --what.questions)
      world().post({.what = kind::found,
                    .from = node,
                    .pass = pass,
                    .ids = std::exchange(what.recvs, {}),
                    .settled = world().participant(node, pass)->settled()});
  }
  void carry_out(Number node, pass_index pass, in::answer_walk& what) {
    if (auto* lead = world().lead(pass))
      act(pass, lead->found(world().id_of(node), what.recvs, world().participant(node, pass)->settled()));
  }
  void carry_out(Number node, pass_index pass, in::answer_abort& what) {
    world().free(node, pass);
    world().post({.what = kind::aborted,
                  .from = node,
                  .pass = pass,
                  .sent_to = std::move(what.sent_to),
                  .settled = world().participant(node, pass)->settled()});
  }
  void carry_out(Number node, pass_index pass, in::tell_senders& what) {
    for (const auto who : what.who)
      if (const auto to = world().number_of(who); to != 0)
        fail(node, to, pass, {errc::peer_down, "a node lost its connection to the node that started the pass"});
  }
  void carry_out(Number node, pass_index pass, in::hand_out&) { world().handed_out(node, pass); }
  void carry_out(Number node, pass_index pass, in::end&) { world().ended(node, pass); }

  void carry_out(pass_index pass, of::walk_roots&) { act(0, pass, world().participant(0, pass)->walk_roots()); }
  void carry_out(pass_index pass, of::ask_discover& what) {
    const auto to = world().number_of(what.who);
    if (!world().reaches(0, to)) return is_down(pass, what.who);
    world().post({.what = kind::discover, .to = to, .pass = pass, .ids = std::move(what.sends)});
  }
  void carry_out(pass_index pass, of::send_prune& what) {
    world().prunes(pass);
    event message{.what = kind::prune,
                  .to = world().number_of(what.who),
                  .pass = pass,
                  .carried = std::move(what.carried),
                  .ids = std::move(what.live)};
    if (!world().reaches(0, message.to)) return is_down(pass, what.who);
    message.to == 0 ? handle(message) : world().post(std::move(message));
  }
  void carry_out(pass_index pass, of::ask_abort& what) {
    const auto to = world().number_of(what.who);
    if (!world().reaches(0, to)) return act(pass, world().lead(pass)->peer_down(what.who, "is down"));
    world().post({.what = kind::abort, .to = to, .pass = pass});
    world().await_abort(pass, what.who);
  }
  void carry_out(pass_index pass, of::await_aborts&) { world().await_aborts(pass); }
  void carry_out(pass_index pass, of::name_unused& what) {
    world().unused(pass, what.nodes);
    act(pass, world().lead(pass)->failed(world().id_of(0), errc::misuse, "results went unused in fast mode"));
  }
  void carry_out(pass_index pass, of::complete& what) {
    const bool failed = world().lead(pass)->result().has_value();
    world().complete(pass, what.not_done);
    if (!failed) return;
    if (auto* mine = world().skip(0, pass)) act(0, pass, mine->close(true));
  }

  void is_down(pass_index pass, node_id who) { act(pass, world().lead(pass)->failed(who, errc::peer_down, "a node is down")); }

  /// Tells another node that the pass fails. On node 0 the initiator hears at once.
  void fail(Number node, Number to, pass_index pass, protocol::failure why) {
    event message{.what = kind::failed, .from = node, .to = to, .pass = pass, .why = std::move(why)};
    node == to ? handle(message) : world().post(std::move(message));
  }

  /// The context is gone: tells the initiator, or the sender if the initiator counts as down.
  void refuse(const event& what) {
    if (what.to != 0)
      fail(what.to, world().reaches(what.to, 0) ? Number{0} : what.from, what.pass,
           {errc::unknown_context, "the context was released"});
  }
};

}  // namespace troupe::simulation
