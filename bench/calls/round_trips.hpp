// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::bench {

/// The number of processes on one side. The first one is the driver.
inline constexpr int chain_length = 4;

/// A driver that calls `add(x, x)` on another process and runs backward over the result. There is one for troupe and one for
/// PyTorch.
class round_trips {
 public:
  virtual ~round_trips() = default;

  /// Opens a context. Calls of this thread join the context until close().
  virtual void open() = 0;
  virtual void close() = 0;
  /// Calls the other process and waits for the answer.
  virtual at::Tensor call(const at::Tensor& x) = 0;
  /// Makes `calls` calls at once and returns their answers.
  virtual std::vector<at::Tensor> call_at_once(const at::Tensor& x, int calls) = 0;
  /// Calls through all processes, forth and back; each process calls the next one. On the way forth, each process except the
  /// first one doubles the tensor. On the way back, each process except the first and the last one doubles the tensor again.
  virtual at::Tensor call_chain(const at::Tensor& x) = 0;
  /// Runs backward and waits until the pass is over on all processes. `fast`: troupe's fast mode, which is the only mode of
  /// PyTorch.
  virtual void backward(const at::Tensor& root, bool fast = false) = 0;
  virtual at::Tensor gradient(const at::Tensor& leaf) = 0;
};

}  // namespace troupe::bench
