// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <boost/container/flat_map.hpp>

#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/passes/context_members.hpp>
#include <troupe/actors/passes/guest_pass.hpp>
#include <troupe/actors/passes/known_passes.hpp>
#include <troupe/actors/support/activity.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/protocol/burst_share.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::passes {

/// What a node knows of a context: the sends, the other nodes that joined the context, and the passes. Any thread may use the
/// record. docs/design.md lists the states of a pass.
///   CR-1  at most one pass that was started on this node runs at a time.
///   CR-2  a send is known before the message that carries its tensors leaves; no send is added after the release.
///   CR-3  from begin() or follow() on, a pass is not begun again on this node. Its graph task is in the table until the
///         gradients of the pass are gathered, the pass has failed, or the context is released.
///   CR-4  no node makes itself take part in the context: members.takes_part() counts only calls, and nodes that the answers to
///         calls name.
///   CR-5  the record of the node that opened the context learns nothing of passes from other nodes.
///   CR-6  this node takes part in at most `most_tasks` passes of one other node at a time, from follow() to the end of the
///         graph task (see CR-3), in all contexts that the other node has opened. A pass beyond that is refused.
///   CR-7  of another node's context, this node remembers at most `most_failed` failed passes, and refuses a call that names
///         more. If this node forgot a failed pass, the gradients of this pass would count.
class context_record {
 public:
  /// `counts`: counts this record until its release, and the passes that this node starts.
  context_record(context_id id, node_id here, support::activity& counts) : members(id, here), id_(id), counts_(counts) {
    ++counts_.contexts;
    ++counts_.contexts_opened;
  }

  context_id id() const noexcept { return id_; }

  context_members members;
  std::atomic<bool> is_profiled{false};  // whether a caller asked for spans
  guest_source guests;

  static constexpr std::size_t most_tasks = 4096;
  static constexpr std::size_t most_failed = 4096;
  using task_count = std::atomic<std::size_t>;
  /// From now on `tasks` also counts the graph tasks of this record. All contexts of one opener share `tasks` (CR-6). To be
  /// called before any pass.
  void count_in(std::shared_ptr<task_count> tasks);

  /// Adds the send of a message to node `to`, if the message has one, and the functions recorded before the message. `to` is
  /// empty for an answer. Returns false after the release.
  bool add(engine::send_source send, node_id to, std::vector<engine::recording> recordings = {});
  /// Ends a recording that was added without an end: the calling thread has recorded the last function of the recording.
  void end_recording(const engine::recording& which);
  /// Learns from another node which passes have completed or failed. Returns the graph tasks of the failed passes; the caller
  /// closes them. No effect on the node that opened the context: that node begins all passes, and knows how they ended. Throws
  /// troupe::error (refused) if too many passes have failed (CR-7); then nothing has changed.
  std::vector<contracts::graph_task_actor> learn(pass_number completed, const std::vector<pass_number>& failed);
  /// Whether this node needs to know more of the passes: gradients here wait to be gathered, or this node took part in a pass
  /// and the caller knows of passes that this node does not know.
  bool lacks(pass_number completed, const std::vector<pass_number>& failed) const;
  struct start {
    pass_number number;
    std::vector<engine::send_source> sends;
    std::set<node_id> peers;
    std::vector<engine::recording> recordings;
    protocol::call_tree_position_ptr position;  // see context_members::position()
  };
  /// Starts the next pass on this node. Returns nothing while another pass runs, and with `at_once` also while gradients of
  /// earlier passes are not gathered yet.
  std::optional<start> begin(bool at_once);
  /// Takes part in a pass that another node started. Returns nothing if this node knows of this pass or of a later pass
  /// already, if the pass has failed, after the release, or if lacks_capacity_for().
  std::optional<start> follow(pass_number number);
  /// Whether this node does not take part in the pass because it takes part in too many others (CR-6).
  bool lacks_capacity_for(pass_number number) const;
  /// Adds the graph task of a pass that was begun or followed. Returns false after the release; the caller then has to close
  /// the task.
  bool set_task(pass_number number, contracts::graph_task_actor task);
  /// The graph task of the pass; null if there is none.
  contracts::graph_task_actor task_of(pass_number number) const;
  std::vector<contracts::graph_task_actor> tasks() const;
  /// Notes that a pass that this node started has completed or failed. Drops the graph task of a failed pass.
  void end(pass_number number, bool succeeded);
  /// Notes that a pass failed on another node, so that this node will not take part. Returns the graph task of the pass, if
  /// there is one.
  contracts::graph_task_actor skip(pass_number number);
  /// Takes the graph task of the oldest completed pass; the caller gathers the gradients of that pass. Null: the gradients of
  /// all completed passes are gathered.
  contracts::graph_task_actor next_to_gather();

  known_passes passes() const {
    checked_lock lock(mutex_);
    return passes_;
  }
  /// The recordings of the calls and passes of this context on this node so far.
  std::vector<engine::recording> recordings() const;

  /// What the context held at its release. The caller closes the tasks, and frees the sends on a thread that may work for long.
  struct remains {
    std::vector<engine::send_source> sends;
    std::vector<contracts::graph_task_actor> tasks;
  };
  /// Releases the context: from now on add() and set_task() add nothing.
  remains release();
  bool is_released() const {
    const checked_lock lock(mutex_);
    return released_;
  }

 private:
  contracts::graph_task_actor take_task(pass_number number) TROUPE_REQUIRES(mutex_);
  bool is_over(pass_number number) const TROUPE_REQUIRES(mutex_);
  bool is_crowded() const { return tasks_of_opener_ && *tasks_of_opener_ >= most_tasks; }

  const context_id id_;
  support::activity& counts_;
  std::shared_ptr<task_count> tasks_of_opener_;
  mutable checked_mutex mutex_;
  std::vector<engine::send_source> sends_ TROUPE_GUARDED_BY(mutex_);
  std::vector<engine::recording> recordings_ TROUPE_GUARDED_BY(mutex_);  // made by calls, and by passes that create a graph
  known_passes passes_ TROUPE_GUARDED_BY(mutex_);
  // Graph tasks of the current pass and of passes whose gradients are not gathered yet.
  boost::container::flat_map<pass_number, contracts::graph_task_actor> tasks_ TROUPE_GUARDED_BY(mutex_);
  bool released_ TROUPE_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::passes
