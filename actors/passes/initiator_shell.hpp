// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <caf/duration.hpp>
#include <caf/send.hpp>

#include <troupe/actors/passes/participant_shell.hpp>
#include <troupe/actors/support/exception_text.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::passes {

// How long the initiator waits for the answers to an abort. The pass ends without the answer of a node that takes longer.
inline constexpr std::chrono::milliseconds abort_deadline{1000};

/// The handlers of a graph task that are about the whole pass, on the node that started the pass. protocol::initiator decides
/// what the handlers do. On other nodes the state has no initiator, and the handlers do nothing.
template <class Self>
struct initiator_shell : pass_shell<Self> {
  using base = pass_shell<Self>;
  using base::base, base::here, base::me, base::self, base::state, base::terms;

  void quiet(participant_quiet& message) {
    if (state.lead) act(state.lead->quiet(std::move(message.carried)));
  }

  void found(node_id from, const std::vector<message_id>& recvs, bool settled) { act(state.lead->found(from, recvs, settled)); }

  void failed(node_id from, errc code, std::string text) {
    if (terms.outcome->claim()) act(state.lead->failed(from, code, std::move(text)));
  }

  void peer_went_down(node_id who, const std::string& text) {
    if (state.lead && terms.outcome->claim()) act(state.lead->peer_down(who, text));
  }

  void deadline_passed() {
    if (!state.lead || state.lead->complete() || !terms.outcome->claim()) return;
    if (state.lead->aborting()) return act(state.lead->abort_timeout());
    state.is_late = true;
    failed(here.id(), errc::deadline_passed,
           "backward was not complete within its deadline of " + support::seconds_text(terms.deadline));
  }

  void context_released() {
    if (state.lead && !state.lead->complete())
      terms.outcome->fail(error(errc::unknown_context, "the context was released during backward"));
  }

 private:
  void act(protocol::initiator::steps steps) {
    if (steps.walk_roots) participant_shell(self).walk_roots();
    for (auto& [who, sends] : steps.discover) ask_discover(who, std::move(sends));
    for (auto& [who, each] : steps.prune)
      send_to(who, prune{terms.context, terms.pass, std::move(each.live), std::move(each.carried), terms.keep_graph,
                         terms.create_graph});
    if (!steps.unused.empty())
      failed(here.id(), errc::misuse,
             "fast mode counts on every send being used, and results of calls went unused: functions of node " +
               base::names_of(steps.unused) + " wait for gradients that will not come; smart mode takes care of that");
    for (auto who : steps.abort) ask_abort(who);
    if (state.lead->aborting() && !steps.abort.empty()) self->delayed_send(me(), abort_deadline, support::deadline_atom::value);
    if (steps.complete) complete();
  }

  template <class Message>
  void send_to(node_id who, Message what) {
    if (who == here.id()) return self->send(me(), std::move(what));
    here.directory().sent(who);
    if (auto gateway = here.directory().gateway(who))
      caf::anon_send(gateway, std::move(what));
    else
      is_down(who);
  }

  /// Sends a request to the graph task of node `who`, which may be this actor. Calls `unreachable` if the node is down.
  template <class Question, class Answered, class Failed, class Unreachable>
  void ask(node_id who, caf::duration limit, Question question, Answered answered, Failed no_answer, Unreachable unreachable) {
    if (who == here.id()) {
      self->request(me(), limit, std::move(question)).then(std::move(answered), std::move(no_answer));
      return;
    }
    here.directory().sent(who);
    if (auto gateway = here.directory().gateway(who))
      self->request(gateway, limit, std::move(question)).then(std::move(answered), std::move(no_answer));
    else
      unreachable();
  }

  // A node that goes down never answers. Then the news that the node is down (contracts::peer_down), or the deadline of the
  // pass, ends the wait.
  void ask_discover(node_id who, std::vector<message_id> sends) {
    auto answered = [s = self, who](const discovered& answer) { initiator_shell(s).found(who, answer.recvs, answer.settled); };
    auto no_answer = [s = self, who](const caf::error& reason) {
      initiator_shell sh(s);
      const auto what = to_exception(reason, "discovery on node '" + sh.here.directory().name(who) + "'");
      sh.failed(who, what.code(), what.what());
    };
    ask(who, caf::infinite, discover{terms.context, terms.pass, std::move(sends), terms.keep_graph, terms.create_graph},
        answered, no_answer, [&] { is_down(who); });
  }

  void ask_abort(node_id who) {
    auto answered = [s = self, who](const pass_aborted& answer) { initiator_shell(s).aborted(who, answer); };
    auto no_answer = [s = self, who](const caf::error&) { initiator_shell(s).aborted(who, {}); };
    ask(who, caf::duration{abort_deadline}, abort_pass{terms.context, terms.pass}, answered, no_answer, [&] {
      self->send(me(), contracts::peer_down{member{here.directory().name(who), who, {}, 0}, "is down"});
    });
  }

  void aborted(node_id who, const pass_aborted& answer) { act(state.lead->aborted(who, answer.sent_to, answer.settled)); }

  void is_down(node_id who) { failed(who, errc::peer_down, "node '" + here.directory().name(who) + "' is down"); }

  void complete() {
    const auto& failure = state.lead->result();
    here.deadlines().call_off(state.expiry);
    terms.outcome->end(!failure);
    if (!failure) return terms.outcome->tell();
    auto text = failure->text;
    if (state.is_late) text += "; not done with it: " + base::names_of(state.lead->unsettled());
    terms.outcome->fail(error(failure->code, text));
    base::end();  // the gradients of a failed pass are not needed
  }
};

template <class Self>
initiator_shell(Self) -> initiator_shell<Self>;

}  // namespace troupe::passes
