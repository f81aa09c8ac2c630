// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/autograd_test.py
#pragma once

#include <torch/csrc/distributed/autograd/context/context.h>
#include <torch/csrc/distributed/autograd/engine/dist_engine.h>

namespace torchtroupe {

// libtorch shows these functions, but its headers say that they are private. The rules for private members leave out explicit
// instantiations, so one can name them there, and a friend hands them on.
struct accumulate_of_context {
  friend auto member_of(accumulate_of_context);
};
struct thread_of_function {
  friend auto member_of(thread_of_function);
};
struct check_of_roots {
  friend auto member_of(check_of_roots);
};

template <class Name, auto Member>
struct shown_member {
  friend auto member_of(Name) { return Member; }
};
template struct shown_member<accumulate_of_context, &torch::distributed::autograd::DistAutogradContext::accumulateGrad>;
template struct shown_member<thread_of_function, &torch::autograd::Node::thread_id_>;
template struct shown_member<check_of_roots, &torch::distributed::autograd::DistEngine::validateRootsAndRetrieveEdges>;

}  // namespace torchtroupe
