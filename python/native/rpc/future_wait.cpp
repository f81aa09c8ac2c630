// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/bad_input_test.py
#include <chrono>

#include <torch/csrc/distributed/rpc/rref_impl.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include "rpc/private_members.hpp"
#include "rpc/sent_request.hpp"

namespace {

bool is_complete_within(c10::ivalue::Future& future, std::chrono::duration<double> patience) {
  return torchtroupe::sending_thread::here()->wait([&] { return future.completed(); },
                                                   future.*member_of(torchtroupe::mutex_of_future{}),
                                                   future.*member_of(torchtroupe::end_of_future{}), nullptr, patience);
}

// Operators take objects of Python without Python's headers.

/// Future.wait() of PyTorch, for so many seconds at most. Returns whether the future is complete.
void wait(torch::jit::Stack& stack) {
  const std::chrono::duration<double> patience(torch::jit::pop(stack).toDouble());
  const auto future = torch::jit::pop(stack).toFuture();
  stack.emplace_back(is_complete_within(*future, patience));
}

/// The same for the value of an RRef that this worker owns.
void wait_for_value(torch::jit::Stack& stack) {
  const std::chrono::duration<double> patience(torch::jit::pop(stack).toDouble());
  const auto owner = torch::distributed::rpc::fromRRefInterface(torch::jit::pop(stack).toRRef());
  stack.emplace_back(is_complete_within(*owner->getFuture(), patience));
}

const torch::jit::RegisterOperators operators(
  {torch::jit::Operator("torchtroupe::wait(Future(t) self, float seconds) -> bool", wait, c10::AliasAnalysisKind::CONSERVATIVE),
   torch::jit::Operator("torchtroupe::wait_for_value(RRef(t) self, float seconds) -> bool", wait_for_value,
                        c10::AliasAnalysisKind::CONSERVATIVE)});

}  // namespace
