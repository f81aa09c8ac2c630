// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/distributed_pass_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/guest_pass.hpp>
#include <troupe/actors/passes/pass_outcome.hpp>
#include <troupe/actors/passes/pass_services.hpp>
#include <troupe/engine/current_streams.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/protocol/burst_share.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::passes {

/// The engine's graph task of one pass on one node, with its settings. make_terms() makes the settings. The thread of the first
/// burst makes the graph task. The thread of each burst owns and runs it.
struct pass_task {
  engine::graph_task_settings settings;  // the first burst makes `task` with these settings
  std::optional<engine::graph_task> task;
  std::map<message_id, std::size_t> send_index;
  mutable checked_mutex leaves_mutex;  // hooks on other threads may read `leaves` while the task runs
  engine::gradient_table leaves TROUPE_GUARDED_BY(leaves_mutex);
  std::optional<engine::current_streams> streams;  // the streams of the caller; none if another node started the pass
  contracts::context_record_ptr record;
  engine::pass_recorder recorder;          // used with create_graph
  bool anomaly = false;                    // the context's calls were made in anomaly mode
  std::unique_ptr<engine::outlet> outlet;  // used only by the thread that runs the burst
  std::shared_ptr<guest_pass> guest;       // null if all functions are the context's own
};

/// The facts that a graph task and its bursts know of their pass.
struct shared_terms {
  context_id context;
  pass_number pass;
  bool keep_graph = false;
  bool create_graph = false;
  program_place program;  // the pass's place in the program, with create_graph
  std::shared_ptr<std::atomic<bool>> stop = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<pass_outcome> outcome;  // null if another node started the pass
};

/// A burst of a pass. On the way to a thread, the struct holds the work. On the way back to the `graph_task` actor, the struct
/// holds the results.
struct burst : shared_terms {
  enum class kind { run, walk_roots, walk_sends };
  struct delivery {
    message_id send;
    std::vector<at::Tensor> gradients;
    message_id joint;  // used with create_graph: see propagate_gradients
    std::vector<bool> requires_grad;
    std::vector<std::vector<std::int64_t>> shapes;  // expanded shapes; see propagate_gradients
    wire_format format = wire_format::exact;        // used with create_graph
    std::vector<packing> packings = {};
    std::vector<bool> unreached = {};      // see propagate_gradients
    decltype(sent_ahead::made) made = {};  // of gradients of this node
  };

  kind what = kind::run;
  protocol::burst_share share = {};
  std::vector<delivery> deliveries = {};
  std::vector<message_id> sends = {};  // sends to drop (run), or to start the walk from (walk_sends)
  std::unique_ptr<pass_task> state = {};

  std::uint64_t functions = 0;         // number of functions that ran
  std::vector<message_id> recvs = {};  // recvs that a walk found
  std::optional<error> failure = {};
};

/// If this thread runs functions of a pass of the context: returns the gradients that this pass has gathered on this node so
/// far. Otherwise returns nothing.
engine::gradient_table gathered_by_burst(context_id context);
at::Tensor gathered_by_burst(context_id context, const at::Tensor& leaf);

/// Runs a burst on this thread. The context of the burst is open in its functions and hooks, on pass workers too. Never throws:
/// an error goes to `failure`, with the names of the node and the function.
void run_burst(burst& work, const burst_services& here);

}  // namespace troupe::passes
