// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/agent_test.py
#pragma once

#include <memory>

#include <torch/csrc/distributed/rpc/request_callback.h>

namespace torchtroupe {

/// PyTorch's own RequestCallbackImpl, which runs requests: Python functions, TorchScript, RRefs. Its header includes Python.h,
/// and no library has its constructor. But the class has no members, and libtorch_python shows its table of virtual functions.
/// Throws std::runtime_error if libtorch_python has no such table.
std::unique_ptr<torch::distributed::rpc::RequestCallback> make_python_callback();

}  // namespace torchtroupe
