// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/parallel_test.cpp, tests/engine/parallel_state_test.cpp
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/engine/cpu_workers.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/graph_task_implementation.hpp>
#include <troupe/engine/job_board.hpp>
#include <troupe/engine/lane.hpp>
#include <troupe/engine/libtorch_task.hpp>
#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/thread_state.hpp>
#include <troupe/engine/warning_relay.hpp>

namespace troupe::engine {

using clock = std::chrono::steady_clock;

namespace {

std::int64_t nanoseconds_since(clock::time_point start) { return std::chrono::nanoseconds(clock::now() - start).count(); }

}  // namespace

// Runs functions serially in groups, and measures each group. Ends when a second group has taken at least cpu_workers::grain():
// if only one function is large, workers have nothing to run in parallel. A group is twice as large as the one before, up to 32
// functions. After the first long group the next is a single function, because a few large functions often follow each other.
// Returns the number of functions that have run.
std::size_t graph_task::implementation::run_until_large(const std::atomic<bool>* stop) {
  constexpr int most_at_once = 32;
  std::size_t functions = 0;
  bool long_before = false;
  auto start = clock::now();
  for (int at_once = 1; !ready.empty();) {
    for (int left = at_once; left > 0 && !ready.empty(); --left) {
      if (stopped(stop)) return functions;
      running = ready.pop();
      ++begun;
      streams ? step_on_stream(running) : step(running);
      thread_state->restore();
      ++functions;
    }
    const auto now = clock::now();
    const bool is_long = std::chrono::nanoseconds(now - start).count() >= settings.workers->grain();
    if (is_long && std::exchange(long_before, true)) break;
    at_once = is_long ? 1 : std::min(2 * at_once, most_at_once);
    start = now;
  }
  return functions;
}

// Runs a pass that has large functions. Measures each function. Hands a function to its lane if a function of this kind took
// long the last time.
void graph_task::implementation::run_beside(const std::atomic<bool>* stop) {
  cpu_workers& workers = *settings.workers;
  std::size_t functions = 0;
  if (streams && !sums) sums.emplace(graph);  // with streams, sums in serial order and other sums must not mix in a buffer
  if (workers.grain() > 0 && !workers.busy().load(std::memory_order_relaxed)) {
    functions = run_until_large(stop);
    if (abandoned || ready.empty()) return;
  }
  if (!sums) sums.emplace(graph, functions);
  current_pass_id();  // draws the id now, so that all threads of the pass see the same id
  large_functions = 0;
  auto* const here = running_pass::innermost();
  auto* const around = surroundings::current;
  std::uint32_t depth = 0;
  for (auto* outer = here->outer(); outer != nullptr; outer = outer->outer()) ++depth;
  warning_relay warnings;
  std::exception_ptr failure;
  {
    const auto as_of_this_pass = [=, this, &warnings](std::uint32_t index, const auto& work) {
      const c10::WarningUtils::WarningHandlerGuard relayed(&warnings);
      const same_passes as_there(here, around);
      const running_pass there(settings, graph, ready, index, notes);
      if (!asks_libtorch || index == plan::none) return work();
      for (auto& each : inside_libtorch_task(nullptr, settings.keep_graph, settings.create_graph, [&] {
             work();
             return false;
           }))
        notes.queue(std::move(each));
    };
    job_board board({.run = [=, this](job& next) { as_of_this_pass(next.index, [&] { run_job(next); }); },
                     .go_on = [=, this](job_board& on) { as_of_this_pass(plan::none, [&] { go_on(on); }); }},
                    streams != nullptr, depth);
    try {
      share(board, warnings, stop);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  notes.has_functions_away = false;
  warnings.replay_and_rethrow(failure);  // no worker runs a job of this pass any more
  workers.busy().store(large_functions > 1, std::memory_order_relaxed);
}

void graph_task::implementation::share(job_board& board, warning_relay& warnings, const std::atomic<bool>* stop) {
  auto own = board.own();
  const auto collect = [&] {
    if (const auto left = board.take_left()) hand_on(*left);
    for (const auto& done : board.collect()) {
      hand_on(*done);
      warnings.replay();  // the function's own error comes first: a warning handler may throw too
    }
  };
  while (!stopped(stop)) {
    collect();
    if (!ready.empty()) {
      running = ready.pop();
      ++begun;
      notes.has_functions_away = board.has_away();
      if (!hand_over(board, running)) run_small(running);
    } else if (const auto next = board.take()) {
      is_away = true;
      own.unlock();
      while (board.has_done()) {
        own.lock();
        go_on(board);
        own.unlock();
      }
      running = next->index;
      run_alone(*next);
      own.lock();
      is_away = false;
      hand_on(*next);
    } else if (!board.wait(own)) {
      break;
    }
    thread_state->restore();
  }
}

// Distributes the outputs of finished functions. Then hands functions that became ready to their lanes: large functions and,
// while the thread of the pass runs a function, all functions on accelerators. The thread of the pass gets all other functions.
// It gets functions with a user's code too, because these may look at leaves to which that thread still has to add gradients
// (GT-12). Called by a worker, and by the thread of the pass before it runs a job itself.
void graph_task::implementation::go_on(job_board& board) {
  std::vector<std::uint32_t> next;
  for (auto& done : board.collect()) {
    if (abandoned) return;
    if (!done->failure) {
      try {
        made_ready = &next;
        hand_outputs_on(*done);
      } catch (...) {
        done->failure = std::current_exception();
      }
      made_ready = nullptr;
    }
    if (done->failure) board.wake(std::move(done));
  }
  for (const std::uint32_t index : next) {
    const plan::vertex& vertex = graph.vertices[index];
    if (vertex.marks == plan::needed && !(asks_libtorch && runs_code_of_user(vertex)) && hand_over(board, index))
      ++begun;
    else
      push(index);
  }
  if (!ready.empty() || !board.has_away()) board.wake();
}

bool graph_task::implementation::hand_over(job_board& board, std::uint32_t index) {
  lane* const where = lane_for(index);
  if (where == nullptr) return false;
  const plan::vertex& vertex = graph.vertices[index];
  const entered_stream entered(streams.get(), vertex);
  if (!prepare(index)) return true;
  board.add(*where, std::make_unique<job>(taken_job(index)), vertex.sequence);
  return true;
}

// Returns the lane that runs the function; null if the thread of the pass runs it. That thread runs small functions, functions
// that end a graph, and functions of accelerators without a lane. While that thread runs a function, small functions of an
// accelerator go to their lane too. Small functions of the CPU never do, because handing one over costs more than it saves.
lane* graph_task::implementation::lane_for(std::uint32_t index) const {
  const plan::vertex& vertex = graph.vertices[index];
  if ((vertex.marks & plan::needed) == 0 || vertex.edge_count == 0) return nullptr;
  cpu_workers& workers = *settings.workers;
  const c10::Device device = streams ? vertex.function->device() : c10::Device(at::kCPU);
  if (!is_away || device.is_cpu()) {
    const auto kind = cost_book::kind_of(*vertex.function, {slots.data() + vertex.first_slot, vertex.slot_count});
    if (workers.costs().cost(kind) < workers.grain()) return nullptr;
  }
  return device.is_cpu() ? &workers.cpu_lane() : workers.lane_of(device);
}

// Makes a job of the inputs that prepare() has taken.
job graph_task::implementation::taken_job(std::uint32_t index) {
  job next;
  next.index = index;
  next.kind = cost_book::kind_of(*graph.vertices[index].function, inputs);
  next.inputs.swap(inputs);
  return next;
}

void graph_task::implementation::run_small(std::uint32_t index) {
  const plan::vertex& vertex = graph.vertices[index];
  const entered_stream entered(streams.get(), vertex);
  if (!prepare(index)) return;
  job next = taken_job(index);
  evaluate_job(next);
  thread_state->restore();
  count_large(next);
  distribute_in_order(vertex, next.outputs);
  if (streams && vertex.edge_count == 0) give_leaf_to_caller(*vertex.function);
}

// Runs a job on the thread of the pass, without the ownership of the pass. Stores an exception in the job.
void graph_task::implementation::run_alone(job& next) noexcept {
  try {
    run_job(next);
  } catch (...) {
    next.failure = std::current_exception();
  }
}

// Called without the ownership of the pass (job_board.hpp).
void graph_task::implementation::run_job(job& next) const {
  if (streams)
    next.made = streams->run_elsewhere(graph.vertices[next.index], next.outputs, [&] { evaluate_job(next); });
  else
    evaluate_job(next);
}

void graph_task::implementation::evaluate_job(job& next) const {
  const plan::vertex& vertex = graph.vertices[next.index];
  const auto start = clock::now();
  next.outputs = evaluate(*vertex.function, next.inputs, graph.edges.data() + vertex.first_edge);
  next.cost = nanoseconds_since(start);
  settings.workers->costs().note(next.kind, next.cost);
}

void graph_task::implementation::count_large(const job& done) {
  large_functions += done.cost >= settings.workers->grain() ? 1 : 0;
}

void graph_task::implementation::hand_on(job& done) {
  running = done.index;
  if (done.failure) std::rethrow_exception(done.failure);
  thread_state->restore();
  hand_outputs_on(done);
}

void graph_task::implementation::hand_outputs_on(job& done) {
  const plan::vertex& vertex = graph.vertices[done.index];
  const entered_stream entered(streams.get(), vertex, std::move(done.made));
  count_large(done);
  distribute_in_order(vertex, done.outputs);
}

}  // namespace troupe::engine
