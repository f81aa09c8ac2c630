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

/// What a node knows of a context. The context's actor uses it, and so do the threads that call, answer and start passes: these
/// threads need not ask the actor. Any thread may use it.
///   CR-1  at most one pass that was started on this node runs at a time.
///   CR-2  a send is known before the message that carries its tensors leaves; no send is added after the release.
class context_record {
 public:
  /// `counts`: where the record counts itself until its release, and the passes that are started on this node.
  context_record(context_id id, node_id here, support::activity& counts) : id_(id), here_(here), counts_(counts) {
    ++counts_.contexts;
    ++counts_.contexts_opened;
  }

  context_id id() const noexcept { return id_; }

  /// Adds what a message to `to` joins: its send, if any, and what was recorded before it. `to` is empty for an answer. False after the
  /// release.
  bool add(engine::send_source send, node_id to, std::vector<engine::recording> recordings = {});
  /// Fills in what a call says about the context's passes.
  void brief(call_request& request) const;
  /// Adds nodes that joined the context below a call from this node.
  void joined(const std::vector<node_id>& nodes);
  void left(node_id who);
  std::vector<node_id> peers() const;

  /// Takes what a caller knows about passes. False if the context's actor has to act first: passes have failed or left gradients
  /// here.
  bool take_news(const call_request& request);

  struct start {
    pass_number number;
    std::vector<engine::send_source> sends;
    std::set<node_id> peers;
    std::vector<engine::recording> recordings;
  };
  /// Starts the next pass on this node. Empty while another pass runs, and with `at_once` also while gradients of earlier passes are
  /// not gathered yet.
  std::optional<start> begin(bool at_once);
  /// Takes part in a pass that another node started. Empty unless the pass is newer than all others.
  std::optional<start> follow(pass_number number);
  /// Hands over the graph task of a pass that was started on this node; the context's actor gets it by take_over().
  void hand_over(pass_number number, caf::strong_actor_ptr task);
  std::vector<std::pair<pass_number, caf::strong_actor_ptr>> take_over();
  /// The pass has ended: it no longer runs, and counts as completed or failed.
  void end(pass_number number, bool succeeded);
  void fail(pass_number number);
  /// The pass failed on another node: it is not started on this node any more.
  void skip(pass_number number);
  void complete(pass_number number);
  /// All gradients of completed passes are gathered.
  void gathered();

  /// Whether a caller asked for spans.
  bool profiled() const;
  pass_number completed() const;
  bool running() const;
  /// What calls and passes have recorded on this node so far.
  std::vector<engine::recording> recordings() const;

  /// Returns the sends, for the caller to free on a thread that may take its time. From now on nothing is added.
  std::vector<engine::send_source> release();

 private:
  const context_id id_;
  const node_id here_;
  support::activity& counts_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<engine::send_source> sends_;
  std::vector<engine::recording> recordings_;  // made by calls, and by passes that create a graph
  std::set<node_id> peers_;                    // nodes that joined the context by calls from this node
  pass_number completed_;                      // the last pass known to be complete
  std::set<pass_number> failed_;               // passes known to have failed, here or on the node that began them
  pass_number current_;                        // the last pass that this node began or heard of
  pass_number running_;                        // the running pass that was started here; 0: none
  std::vector<std::pair<pass_number, caf::strong_actor_ptr>> handed_over_;
  bool has_gradients_ = false;  // some pass left gradients here
  bool ungathered_ = false;     // some graph task of a pass still has them
  bool profiled_ = false;
  bool released_ = false;
};

}  // namespace troupe::passes
