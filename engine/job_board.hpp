// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include <torch/csrc/autograd/function.h>

#include <troupe/engine/cost_book.hpp>
#include <troupe/engine/cpu_workers.hpp>

namespace troupe::engine {

/// A function of a pass whose inputs are complete.
struct job {
  std::uint32_t index = 0;  // of its vertex
  cost_book::kind kind = 0;
  std::int64_t cost = 0;  // nanoseconds, once it has run
  torch::autograd::variable_list inputs;
  torch::autograd::variable_list outputs;
  std::exception_ptr failure;
};

/// The functions of one pass that may run at once: workers take them from here, and so does the pass itself when it has nothing
/// else to do. Owned by the thread that runs the pass.
///   JB-1  a job runs with the thread-local state, grad mode included, the number of libtorch's threads and the rounding of
///         the pass.
///   JB-2  jobs begin in the order in which they were added.
///   JB-3  after the destructor no job runs any more. Those that had not begun never do.
class job_board {
 public:
  /// `run` does a job on a worker's thread. It may throw.
  job_board(cpu_workers& workers, std::function<void(job&)> run);
  ~job_board();
  job_board(const job_board&) = delete;
  job_board& operator=(const job_board&) = delete;

  void add(std::unique_ptr<job> next);

  /// Jobs that workers have done since the last call.
  std::vector<std::unique_ptr<job>> collect();

  /// The next job that no worker has begun, which then is the caller's to run; null where there is none.
  std::unique_ptr<job> take();

  /// Blocks until a worker has done a job. False: none is at one.
  bool wait();

 private:
  struct state;

  cpu_workers& workers_;
  std::shared_ptr<state> state_;
};

}  // namespace troupe::engine
