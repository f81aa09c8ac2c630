// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <caf/actor_control_block.hpp>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::passes {

/// What a node knows of a context, for its actor and for the threads that call, answer and start passes: these need no actor's
/// time for it. Any thread may use it.
///   CR-1  one pass that was started here runs at a time.
///   CR-2  a send is known before the message that carries its tensors leaves; none is taken after the release.
class context_record {
 public:
  /// It counts itself until its release, and passes that are started here, in `counts`.
  context_record(context_id id, node_id here, support::activity& counts) : id_(id), here_(here), counts_(counts) {
    ++counts_.contexts;
    ++counts_.contexts_opened;
  }

  context_id id() const noexcept { return id_; }

  /// A message to `to` (or an answer: none); its send, if any, and what was recorded. False after the release.
  bool add(engine::send_source send, node_id to, std::vector<engine::recording> recordings = {});
  /// What a call has to tell of the context's passes.
  void brief(call_request& request) const;
  /// Nodes that joined below a call from here.
  void joined(const std::vector<node_id>& nodes);
  void left(node_id who);
  std::vector<node_id> peers() const;

  /// Takes what a caller knows of passes. False if the context's actor has to see to it first: passes left gradients here, or
  /// failed.
  bool take_news(const call_request& request);

  struct start {
    pass_number number;
    std::vector<engine::send_source> sends;
    std::set<node_id> peers;
    std::vector<engine::recording> recordings;
  };
  /// Starts the next pass here. None while another runs, or when `at_once` and gradients of earlier ones are not gathered yet.
  std::optional<start> begin(bool at_once);
  /// A pass of another node's. None unless it is newer than all others.
  std::optional<start> follow(pass_number number);
  /// The graph task of a pass that was started here, for the context's actor to take over.
  void hand_over(pass_number number, caf::strong_actor_ptr task);
  std::vector<std::pair<pass_number, caf::strong_actor_ptr>> take_over();
  /// The pass, if started here, runs no more.
  void end(pass_number number, bool succeeded);
  void fail(pass_number number);
  /// It failed elsewhere, and starts here no more.
  void skip(pass_number number);
  void complete(pass_number number);
  /// All gradients of completed passes are gathered.
  void gathered();

  /// Some caller asked for spans.
  bool profiled() const;
  pass_number completed() const;
  bool running() const;
  /// What calls and passes recorded on this node so far.
  std::vector<engine::recording> recordings() const;

  /// The sends, to be freed where that may take its time; from now on nothing is added.
  std::vector<engine::send_source> release();

 private:
  const context_id id_;
  const node_id here_;
  support::activity& counts_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<engine::send_source> sends_;
  std::vector<engine::recording> recordings_;  // by calls, and by passes that create a graph
  std::set<node_id> peers_;                    // joined the context by calls from here
  pass_number completed_;                      // the last pass known to be complete
  std::set<pass_number> failed_;               // passes known to have failed, here or where they were begun
  pass_number current_;                        // the last pass begun here or heard of
  pass_number running_;                        // the one started here that runs; 0: none
  std::vector<std::pair<pass_number, caf::strong_actor_ptr>> handed_over_;
  bool has_gradients_ = false;  // some pass left gradients here
  bool ungathered_ = false;     // some graph task of a pass still has them
  bool profiled_ = false;
  bool released_ = false;
};

}  // namespace troupe::passes
