// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <caf/error.hpp>

#include <troupe/actors/context_contract.hpp>
#include <troupe/actors/context_record.hpp>
#include <troupe/actors/deadline_clock.hpp>
#include <troupe/actors/graph_task_contract.hpp>

namespace troupe {

class node_services;

/// The gradients of all completed passes, or why they could not be had.
struct gathering {
  gradients_ptr all;
  caf::error failure;
};

struct context_state {
  static inline const char* name = "context";

  ~context_state();

  node_services* here = nullptr;
  context_record_ptr record;
  gradients_ptr gathered;                         // of completed passes; null: none
  std::map<pass_number, graph_task_actor> tasks;  // of the current pass and of those whose gradients are not gathered yet
  bool merging = false;
  deadline_clock::alarm expiry;                                // of the step of the merge that is under way
  caf::error lost;                                             // why gradients of a completed pass are not to be had
  std::vector<std::function<void(const gathering&)>> readers;  // wait for the merge
};

template <class Self>
context_actor::behavior_type make_context(Self self, node_services* here, context_record_ptr record);

context_actor spawn_context(node_services& here, context_record_ptr record);

}  // namespace troupe
