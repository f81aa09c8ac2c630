// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include <torch/csrc/autograd/function.h>

#include <troupe/engine/cost_book.hpp>
#include <troupe/engine/lane.hpp>
#include <troupe/engine/stream_order.hpp>

namespace troupe::engine {

/// A function of a pass whose inputs are complete.
struct job {
  std::uint32_t index = 0;  // the vertex of the function
  cost_book::kind kind = 0;
  std::int64_t cost = 0;  // nanoseconds; set after the job has run
  torch::autograd::variable_list inputs;
  torch::autograd::variable_list outputs;
  stream_order::events made;  // when the accelerator has made the outputs; set after the job has run on a worker
  std::exception_ptr failure;
};

/// The functions of one pass that lanes run. The thread that runs the pass owns the board: this thread hands jobs to lanes, collects
/// what workers have finished, and runs the jobs that no worker has begun when it has nothing else to do.
///   JB-1  a job runs with the pass's thread-local state (grad mode included), number of libtorch threads and rounding mode, and, if
///         the pass uses an accelerator, with the current devices and streams of the pass's thread. A worker has its own again after
///         the job.
///   JB-2  take() gives jobs in the order in which they were added, those for the CPU before those for accelerators: a thread that
///         waits for an accelerator computes nothing.
///   JB-3  no job runs after the destructor. A job that has not begun before the destructor never runs.
class job_board {
 public:
  /// `run` runs a job on the thread of a worker. `run` may throw. `depth`: the number of passes around this pass.
  job_board(std::function<void(job&)> run, bool uses_accelerator = false, std::uint32_t depth = 0);
  ~job_board();
  job_board(const job_board&) = delete;
  job_board& operator=(const job_board&) = delete;

  /// `sequence`: the sequence number of the job's function.
  void add(lane& where, std::unique_ptr<job> next, std::uint64_t sequence = 0);

  /// The jobs that workers have finished since the last call.
  std::vector<std::unique_ptr<job>> collect();

  /// The next job that no worker has begun, for the caller to run; null if there is none.
  std::unique_ptr<job> take();

  /// Blocks until a worker has finished a job. Returns false if no worker runs a job and collect() would return none. A thread
  /// that serves a lane serves it meanwhile (LV-2). Pre: take() has returned null, so the wait is for running jobs alone.
  bool wait();

 private:
  struct state;
  struct handed_over;
  using handed = std::deque<std::shared_ptr<handed_over>>;  // some of them have begun

  std::unique_ptr<job> take(handed& from);

  std::shared_ptr<state> state_;
  handed to_cpu_;
  handed to_accelerators_;
  std::size_t away_ = 0;  // jobs that were handed over and have not come back
  const std::uint32_t depth_;
};

}  // namespace troupe::engine
