// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/autograd_test.py, tests/python/rpc/bad_input_test.py
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/autograd/context/context.h>
#include <torch/csrc/distributed/autograd/engine/dist_engine.h>
#include <torch/csrc/distributed/rpc/rref_context.h>

namespace torchtroupe {

// libtorch shows these members, but its headers say that they are private. The rules for private members leave out explicit
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
struct mutex_of_future {
  friend auto member_of(mutex_of_future);
};
struct end_of_future {
  friend auto member_of(end_of_future);
};
struct next_context {
  friend auto member_of(next_context);
};
struct next_message {
  friend auto member_of(next_message);
};
struct next_reference {
  friend auto member_of(next_reference);
};
struct mutex_of_rrefs {
  friend auto member_of(mutex_of_rrefs);
};
struct forks_of_rrefs {
  friend auto member_of(forks_of_rrefs);
};

template <class Name, auto Member>
struct shown_member {
  friend auto member_of(Name) { return Member; }
};
template struct shown_member<accumulate_of_context, &torch::distributed::autograd::DistAutogradContext::accumulateGrad>;
template struct shown_member<thread_of_function, &torch::autograd::Node::thread_id_>;
template struct shown_member<check_of_roots, &torch::distributed::autograd::DistEngine::validateRootsAndRetrieveEdges>;
template struct shown_member<mutex_of_future, &c10::ivalue::Future::mutex_>;
template struct shown_member<end_of_future, &c10::ivalue::Future::finished_cv_>;
template struct shown_member<next_context, &torch::distributed::autograd::DistAutogradContainer::next_context_id_>;
template struct shown_member<next_message, &torch::distributed::autograd::DistAutogradContainer::next_autograd_message_id_>;
template struct shown_member<next_reference, &torch::distributed::rpc::RRefContext::nextLocalId_>;
template struct shown_member<mutex_of_rrefs, &torch::distributed::rpc::RRefContext::mutex_>;
template struct shown_member<forks_of_rrefs, &torch::distributed::rpc::RRefContext::forks_>;

}  // namespace torchtroupe
