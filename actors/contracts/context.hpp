// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/orderings_test.cpp, tests/actors/gathering_test.cpp
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <troupe/actors/contracts/jobs.hpp>
#include <troupe/actors/support/atoms.hpp>
#include <troupe/engine/current_streams.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::contracts {

/// A backward pass that a user asks for.
struct backward_job {
  torch::autograd::edge_list roots;
  std::vector<at::Tensor> gradients;
  bool keep_graph = false;
  bool create_graph = false;
  bool fast = false;
  program_place place;
  engine::recording recorded;       // the functions that the thread that called backward has recorded
  engine::current_streams streams;  // of the thread that called backward
  std::chrono::milliseconds deadline{0};
  future<done> result;
  ~backward_job() { result.set_error(error(errc::stopping, "the context was released, or its node has stopped")); }
};
using backward_job_ptr = std::shared_ptr<backward_job>;

/// Gathers the gradients of a context on one node, and starts the passes that have to wait for the gradients of earlier passes.
/// All other facts about a context are in its context record. Messages of a pass go from `gateway` to the graph task. Every
/// call names the failed passes, so that a node that got no abort learns of the failure.
///   CO-1  gradients of a pass are added to those of the context in the order of the passes, once the pass is known to be
///         complete. Gradients of a failed pass are dropped, even on a node that got no abort. If gradients can't be added,
///         later requests for gradients fail.
///   CO-5  after the release this node holds no send, gradient or graph task of the context.
///   CO-7  the release fails all requests for gradients that wait, including those of calls that are about to run.
///   CO-8  no later pass changes gradients that the context has handed out.
using context_actor =
  caf::typed_actor<caf::reacts_to<backward_job_ptr>,  // a pass that has to wait for gradients of earlier passes
                   caf::replies_to<support::gradients_atom>::with<gradients_ptr>,  // of all completed passes
                   caf::reacts_to<gradients_wish_ptr>,                             // the same; the answer completes a future
                   caf::replies_to<pass_history_ptr>::with<gradients_ptr>,         // the same, after learning this history
                   caf::reacts_to<support::close_atom>>;                           // releases the context here and on its peers

}  // namespace troupe::contracts

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::contracts::backward_job_ptr)
