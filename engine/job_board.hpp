// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <torch/csrc/autograd/function.h>

#include <troupe/engine/cost_book.hpp>
#include <troupe/engine/lane.hpp>
#include <troupe/engine/plan.hpp>
#include <troupe/engine/stream_order.hpp>

namespace troupe::engine {

/// A function of a pass that has all its inputs, with all that a lane needs to run the function.
struct job {
  std::uint32_t index = plan::none;  // the vertex of the function
  cost_book::kind kind = 0;
  std::int64_t cost = 0;  // nanoseconds; set after the job has run
  torch::autograd::variable_list inputs;
  torch::autograd::variable_list outputs;
  stream_order::events made;  // when the accelerator has made the outputs; set after the job has run
  std::exception_ptr failure;
};

/// Holds the functions of one pass that lanes run, and the ownership of the pass: the right to change its graph task. One
/// thread at a time has the ownership. The thread of the pass gives the ownership up while it waits or runs a long function.
/// Meanwhile a worker that has finished a job takes the ownership and goes on with the pass. So a lane gets its next function
/// although the thread of the pass is busy. collect(), add() and take() need the ownership.
///   JB-1  a job and `go_on` run with the state of the pass's thread: thread-local state (grad mode included), number of
///         libtorch threads, rounding mode and, if the pass uses an accelerator, current devices and streams. Afterwards the
///         worker has its own state again.
///   JB-2  take() gives jobs in the order in which they were added, but those for the CPU before those for accelerators. The
///         reason: a thread that waits for an accelerator computes nothing.
///   JB-3  after the destructor no job and no `go_on` runs. A job that has not begun by then never runs.
///   JB-4  no finished job is forgotten: `go_on` collects it, or the pass's thread. A worker leaves a finished job only to a
///         thread that has the ownership. That thread asks has_done() after it has given the ownership up.
///   JB-5  wait() also ends when `go_on` has added jobs, so that the thread of the pass runs one of them. It does not end for a
///         single job that the worker itself runs next (LV-4). So no pass waits for a worker that is busy with something else.
class job_board {
 public:
  using ownership = std::unique_lock<std::mutex>;

  struct calls {
    std::function<void(job&)> run;  // runs a job on the thread of a worker; may throw
    std::function<void(job_board&)>
      go_on{};  // called by a worker that has the ownership; null: only the pass's thread collects jobs
  };

  /// `depth`: the number of passes around this pass.
  explicit job_board(calls given, bool uses_accelerator = false, std::uint32_t depth = 0);
  ~job_board();
  job_board(const job_board&) = delete;
  job_board& operator=(const job_board&) = delete;

  /// Waits until no worker has the ownership.
  ownership own();

  /// `sequence`: the sequence number of the job's function.
  void add(lane& where, std::unique_ptr<job> next, std::uint64_t sequence = 0);

  /// Whether collect() would give a job. Needs no ownership: a thread asks after it has given the ownership up (JB-4).
  bool has_done() const noexcept;

  /// Returns the jobs that have finished since the last call.
  std::vector<std::unique_ptr<job>> collect();

  /// Returns the next job that no worker has begun, for the caller to run; null if there is none.
  std::unique_ptr<job> take();

  /// Whether a job was handed over and has not come back.
  bool has_away() const noexcept { return away_ > 0; }

  /// For `go_on`: wakes the thread of the pass. `left`: null, or a job that the thread of the pass has to handle, such as a
  /// failed job. take_left() then returns this job.
  void wake(std::unique_ptr<job> left = nullptr);
  std::unique_ptr<job> take_left();

  /// Gives the ownership up and blocks until a job has finished, jobs were added (JB-5) or wake() was called. Returns false at
  /// once if no job is away (has_away()). If the calling thread is a worker of a lane, it serves the lane while it waits
  /// (LV-2). Before it waits, a pass runs the jobs that take() returns (EW-2).
  bool wait(ownership& own);

 private:
  struct state;
  struct handed_over;
  using handed = std::deque<std::shared_ptr<handed_over>>;  // jobs that were handed over; some have begun

  std::unique_ptr<job> take(handed& from);
  bool begins_here();
  void sleep();

  std::shared_ptr<state> state_;
  handed to_cpu_;
  handed to_accelerators_;
  std::size_t away_ = 0;      // jobs that were handed over and have not come back
  std::size_t added_ = 0;     // jobs that were added since the last `go_on` began
  lane* added_to_ = nullptr;  // the lane of the job that was added last
  const std::uint32_t depth_;
};

}  // namespace troupe::engine
