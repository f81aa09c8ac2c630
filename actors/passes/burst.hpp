// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/contracts/graph_task.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/pass_outcome.hpp>
#include <troupe/devices/courier.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>

namespace troupe::services {

class node_services;

}  // namespace troupe::services

namespace troupe::passes {

/// A node's state machine in one pass. Made in the control plane, planned and run by the worker that owns it for a burst.
struct pass_task {
  engine::graph_task_settings settings;  // until the first burst makes the task of it
  std::optional<engine::graph_task> task;
  std::map<message_id, std::size_t> send_index;
  engine::gradient_table leaves;
  contracts::context_record_ptr record;
  engine::pass_recorder recorder;          // with create_graph
  bool anomaly = false;                    // its context's calls were made in anomaly mode
  std::unique_ptr<engine::outlet> outlet;  // of the worker that has it
};

/// A stretch of work on a pass: what to do and, when it comes back, what happened. It moves between its graph_task actor and a
/// worker.
struct burst {
  enum class kind { run, walk_roots, walk_sends };
  struct delivery {
    message_id send;
    std::vector<at::Tensor> gradients;
    message_id joint;  // with create_graph: see propagate_gradients
    std::vector<bool> requires_grad;
    std::vector<std::vector<std::int64_t>> shapes;  // likewise
  };

  kind what = kind::run;
  context_id context;
  pass_number pass;
  bool keep_graph = false;
  bool create_graph = false;
  program_place place;  // with create_graph: of the pass
  purse carried;
  bool settles = false;  // see participant::burst_terms
  std::vector<delivery> deliveries;
  std::vector<message_id> sends;  // to drop (run), or to walk from (walk_sends)
  std::unique_ptr<pass_task> state;
  std::shared_ptr<std::atomic<bool>> stop;
  std::shared_ptr<pass_outcome> outcome;  // of a pass that was started here

  std::vector<node_id> sent_to;
  std::uint64_t functions = 0;    // that ran
  std::vector<message_id> recvs;  // what a walk found
  std::optional<error> failure;
};

/// Runs a burst on this thread. Never throws: what goes wrong is in `failure`, with the node's name and the function's.
void run_burst(burst& work, services::node_services& here);

}  // namespace troupe::passes
