// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::bench {

/// Processes of a side, the driver included: it is the first of them.
inline constexpr int chain_length = 4;

/// A driver that calls `add(x, x)` on another process and runs backward over what comes back. One for troupe, one for PyTorch.
class round_trips {
 public:
  virtual ~round_trips() = default;

  /// Opens a context; calls of this thread join it until close().
  virtual void open() = 0;
  virtual void close() = 0;
  /// Waits for the answer.
  virtual at::Tensor call(const at::Tensor& x) = 0;
  /// So many calls in flight at once; their answers.
  virtual std::vector<at::Tensor> call_at_once(const at::Tensor& x, int calls) = 0;
  /// Forth and back through all processes, each of which calls the next; all but the first double on the way forth, and all of
  /// these but the last on the way back.
  virtual at::Tensor call_chain(const at::Tensor& x) = 0;
  /// Waits until the pass is over everywhere. `fast`: troupe's fast mode; PyTorch has that one alone.
  virtual void backward(const at::Tensor& root, bool fast = false) = 0;
  virtual at::Tensor gradient(const at::Tensor& leaf) = 0;
};

}  // namespace troupe::bench
