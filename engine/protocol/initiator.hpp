// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/purse.hpp>

namespace troupe::protocol {

/// The side of a distributed pass that started it: decides when it is complete, when to look for unused sends, and aborts it.
///
/// The pass is quiet when all its weight has come home. If every node that has begun is settled by then, it is complete.
/// Otherwise some send waits for gradients that will never come: the initiator asks from the real roots on which sends the
/// recvs lead to, node by node, and prunes the rest. So a pass whose results are all used pays for no discovery.
///   IN-1  it completes exactly once: with success only when the weight is whole and all that began are settled.
///   IN-2  the first failure wins; it completes with it once every node asked to abort has answered, is down or ran out of
///         time.
///   IN-3  one discovery is enough: each node it reaches is pruned, whether it has begun or not.
///   IN-4  without discovery (fast mode) a pass with an unused send fails as soon as all else is done.
class initiator {
 public:
  /// `participants`: nodes that are known to have joined the context, this one included. `discovers`: false in fast mode.
  initiator(node_id here, std::set<node_id> participants, bool discovers = true);

  struct failure {
    errc code = errc::none;
    std::string text;
  };
  struct pruned {
    std::vector<message_id> live;
    purse carried;
  };

  /// What the shell has to do after an event. Messages to `here` go to the local participant.
  struct steps {
    bool walk_roots = false;                              // ask the local task for recvs from the real roots, then found(...)
    std::map<node_id, std::vector<message_id>> discover;  // ask, then found(...) with the answer
    std::map<node_id, pruned> prune;
    std::vector<node_id> abort;   // ask, then aborted(...)
    std::vector<node_id> unused;  // fast mode: sends of theirs get no gradient, and failed(...) has to follow
    bool complete = false;        // the pass is over: result() says how
  };

  steps quiet(purse carried);
  /// An answer to walk_roots or to one discover.
  steps found(const std::vector<message_id>& recvs);
  steps failed(node_id from, errc code, std::string text);
  /// A node answered an abort and named those it had sent gradients to.
  steps aborted(node_id from, const std::vector<node_id>& sent_to);
  /// A node is down: the pass fails if it takes part; it owes no answers.
  steps peer_down(node_id who, std::string text);
  /// Time for aborts is up.
  steps abort_timeout();

  /// Nodes that are not known to be done with the pass, for the text of an error.
  std::vector<node_id> unsettled() const;

  /// None while it runs and after success.
  const std::optional<failure>& result() const noexcept { return failure_; }
  bool complete() const noexcept { return phase_ == phase::complete; }
  bool aborting() const noexcept { return phase_ == phase::aborting; }

  /// All it decides by: two of equal state go on alike. For explorations.
  auto state() const noexcept {
    return std::tie(participants_, home_, phase_, live_, asked_, down_, abort_asked_, abort_open_, failure_, discovers_);
  }

 private:
  enum class phase { running, discovering, pruned, aborting, complete };
  steps after_found();
  steps finish();
  steps fail_with(errc code, std::string text);
  void ask_abort(node_id who, steps& result);

  node_id here_;
  std::set<node_id> participants_;
  bool discovers_;
  purse home_;
  phase phase_ = phase::running;
  std::map<node_id, std::set<message_id>> live_;
  std::size_t asked_ = 0;  // walks and discovers not answered yet
  std::set<node_id> down_;
  std::set<node_id> abort_asked_;
  std::set<node_id> abort_open_;
  std::optional<failure> failure_;
};

}  // namespace troupe::protocol
