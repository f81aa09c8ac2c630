// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/agent_test.py
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/rpc/message.h>

#include <troupe/messages/attributes.hpp>

namespace torchtroupe {

/// A message of PyTorch's RPC as the contents of a call, or of its answer.
struct message_form {
  std::vector<at::Tensor> tensors;
  troupe::attributes values;
};

/// The form in which a message travels.
///   MF-1  the elements of tensors are not pickled: tensors travel beside the bytes, detached. The bytes say which require
///         grad, and have the strides of tensors with gaps, unless the gaps are larger than the tensor. A message with a tensor
///         of a kind that can't travel so (quantised, CSR) is pickled as a whole, by PyTorch.
///   MF-2  bytes above 64 KiB travel as a tensor.
///   MF-3  with `copies` no tensor shares memory with the message: for a worker that calls itself.
message_form to_form(torch::distributed::rpc::Message& message, bool copies);

/// Throws troupe::error (malformed_message) for contents that to_form() does not make.
c10::intrusive_ptr<torch::distributed::rpc::Message> from_form(std::vector<at::Tensor> tensors,
                                                               const troupe::attributes& values);

/// Whether the message is a result of a function of Python, and reading it runs no code of the program: its bytes name no
/// function and no class but the function that finds tensors (_pickling.py; a tensor alone is one byte, which names nothing).
/// May be false for another result that runs no code.
bool is_plain_result(const troupe::attributes& values);

}  // namespace torchtroupe
