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
  std::uint32_t index = 0;  // the vertex of the function
  cost_book::kind kind = 0;
  std::int64_t cost = 0;  // nanoseconds; set after the job has run
  torch::autograd::variable_list inputs;
  torch::autograd::variable_list outputs;
  std::exception_ptr failure;
};

/// The functions of one pass that may run in parallel. Workers take jobs from the board. The thread that runs the pass owns
/// the board, and takes jobs too when it has nothing else to do.
///   JB-1  a job runs with the pass's thread-local state (grad mode included), number of libtorch threads and rounding mode.
///   JB-2  jobs begin in the order in which they were added.
///   JB-3  no job runs after the destructor. A job that has not begun before the destructor never runs.
class job_board {
 public:
  /// `run` runs a job on the thread of a worker. `run` may throw.
  job_board(cpu_workers& workers, std::function<void(job&)> run);
  ~job_board();
  job_board(const job_board&) = delete;
  job_board& operator=(const job_board&) = delete;

  void add(std::unique_ptr<job> next);

  /// The jobs that workers have finished since the last call.
  std::vector<std::unique_ptr<job>> collect();

  /// The next job that no worker has begun, for the caller to run; null if there is none.
  std::unique_ptr<job> take();

  /// Blocks until a worker has finished a job. Returns false if no worker runs a job and collect() would return none.
  bool wait();

 private:
  struct state;

  cpu_workers& workers_;
  std::shared_ptr<state> state_;
};

}  // namespace troupe::engine
