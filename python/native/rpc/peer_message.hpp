// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/peer_test.py
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/function_table.hpp>
#include <troupe/messages/attributes.hpp>

namespace torchtroupe {

/// The arguments or the result of a call by name between a Python worker and another node, of C++ or Python, as
/// torchtroupe/peers.py reads and writes them. Tensors and plain values travel; nothing is pickled (peers.cpp).
///   PC-1  a call within a context of PyTorch's distributed autograd is a call in the context of troupe beside it (UX-1). The
///         edges of the call are troupe's own send and recv, which a pass takes in beside those of PyTorch.
///   PC-2  a function of Python runs in the context of its call. Where the worker has a context of PyTorch beside that context,
///         requests of PyTorch that the function makes join it.
///   PC-3  every call has a deadline: the given one, or the time-out of the worker's requests.
struct peer_message {
  std::vector<at::Tensor> tensors;
  std::string values;  // see to_bytes()
  // Of a call of a function of Python:
  std::string called, caller, failure;
  std::shared_ptr<const troupe::engine::gradient_table> gradients;
  std::optional<std::int64_t> context;  // of PyTorch
};

/// Values as bytes: for each the length of its name (4 bytes), the name, its kind (a byte: the index in attribute's variant),
/// the number of entries (4 bytes), and the entries: 8 bytes for a number, the length (4 bytes) and the bytes of a text.
std::string to_bytes(const troupe::attributes& values);
/// Throws troupe::error (malformed_message).
troupe::attributes from_bytes(const std::string& bytes);

}  // namespace torchtroupe
