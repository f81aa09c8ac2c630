// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/bad_input_test.py
#include <chrono>
#include <mutex>

#include <torch/csrc/jit/runtime/custom_operator.h>

#include "rpc/private_members.hpp"

namespace {

/// Future.wait() of PyTorch, for so many seconds at most. Returns whether the future is complete. An operator takes a future of
/// Python without Python's headers.
void wait(torch::jit::Stack& stack) {
  const std::chrono::duration<double> patience(torch::jit::pop(stack).toDouble());
  const auto future = torch::jit::pop(stack).toFuture();
  std::unique_lock lock((*future).*member_of(torchtroupe::mutex_of_future{}));
  const bool is_done =
    ((*future).*member_of(torchtroupe::end_of_future{})).wait_for(lock, patience, [&] { return future->completed(); });
  lock.unlock();
  stack.emplace_back(is_done);
}

const torch::jit::RegisterOperators operators({torch::jit::Operator("torchtroupe::wait(Future(t) self, float seconds) -> bool",
                                                                    wait, c10::AliasAnalysisKind::CONSERVATIVE)});

}  // namespace
