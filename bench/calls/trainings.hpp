// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::bench {

/// A training of the model of `troupe train`, with one process for each stage and one thread in each operation. Both trainings have
/// the same layers, batch, micro-batches and optimizer.
struct training_size {
  int stages = 2;
  int steps = 30;
  bool quick = false;  // a small model
};

/// Tokens per second of `troupe train`, by the median time of a step, and those of its model in a single process, which is 0 unless
/// `compare`. Throws std::runtime_error with the last lines of the training if the training fails.
std::vector<double> tokens_of_troupe(const training_size& what, bool compare);

/// Tokens per second of bench/calls/peers/torch_pipelining.py: PyTorch's torch.distributed.pipelining over gloo. Throws as above.
std::vector<double> tokens_of_pipelining(const training_size& what, const std::string& python);

/// The Python that has the PyTorch of this troupe: that of the environment variable TROUPE_PYTHON, or build/python, which
/// `make test-python` makes. Empty if it has no such PyTorch.
std::string python_with_torch();

}  // namespace troupe::bench
