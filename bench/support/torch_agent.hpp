// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/rpc/message.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>
#include <torch/csrc/jit/runtime/operator.h>

namespace troupe::bench {

/// PyTorch's RPC on TensorPipe, without Python. Does what init_rpc() does.
struct torch_agent_options {
  std::string meeting_file;  // by which the processes meet; must not exist before the first one comes, but its folder must
  int rank = 0;
  int processes = 2;
  // TensorPipe's names, the first one that both sides have counts. Empty: TensorPipe chooses.
  std::optional<std::vector<std::string>> transports{};
  std::optional<std::vector<std::string>> channels{};
};

std::string torch_worker_name(int rank);

/// Throws c10::Error if the processes do not meet within a minute.
std::shared_ptr<torch::distributed::rpc::TensorPipeAgent> start_torch_agent(const torch_agent_options& how);
/// Waits until all processes have called stop_torch_agent(), and answers calls meanwhile.
void stop_torch_agent(const std::shared_ptr<torch::distributed::rpc::TensorPipeAgent>& agent);

/// Throws std::runtime_error if libtorch has no such operator.
std::shared_ptr<torch::jit::Operator> torch_operator(const char* name, const char* overload);

/// The tensor with which another process has answered. Throws c10::Error if the call failed.
at::Tensor torch_answer(const c10::intrusive_ptr<torch::distributed::rpc::JitFuture>& from);

}  // namespace troupe::bench
