// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/parallel_test.cpp, tests/engine/parallel_state_test.cpp
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include <troupe/engine/cpu_workers.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/graph_task_implementation.hpp>
#include <troupe/engine/job_board.hpp>
#include <troupe/engine/lane.hpp>
#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/thread_state.hpp>
#include <troupe/engine/warning_relay.hpp>

namespace troupe::engine {

using clock = std::chrono::steady_clock;

namespace {

std::int64_t nanoseconds_since(clock::time_point start) { return std::chrono::nanoseconds(clock::now() - start).count(); }

}  // namespace

// Runs functions serially in groups of 1 to 32, and measures each group. Ends when a second group has taken at least the grain
// of the workers: with only one large function, workers would have nothing to run in parallel. Returns the number of functions
// that have run.
std::size_t graph_task::implementation::run_until_large(const std::atomic<bool>* stop) {
  constexpr int most_at_once = 32;
  std::size_t functions = 0;
  bool long_before = false;
  auto start = clock::now();
  for (int at_once = 1; !ready.empty(); at_once = std::min(2 * at_once, most_at_once)) {
    for (int left = at_once; left > 0 && !ready.empty(); --left) {
      if (stopped(stop)) return functions;
      running = ready.pop();
      ++begun;
      streams ? step_on_stream(running) : step(running);
      thread_state->restore();
      ++functions;
    }
    const auto now = clock::now();
    if (std::chrono::nanoseconds(now - start).count() >= settings.workers->grain() && std::exchange(long_before, true)) break;
    start = now;
  }
  return functions;
}

// Runs a pass that has large functions: measures each function, and hands a function to its lane if its kind took long the last
// time.
void graph_task::implementation::run_beside(const std::atomic<bool>* stop) {
  cpu_workers& workers = *settings.workers;
  std::size_t functions = 0;
  if (streams && !sums) sums.emplace(graph);  // streams order two kinds of sums, which must not mix in one buffer
  if (workers.grain() > 0 && !workers.busy().load(std::memory_order_relaxed)) {
    functions = run_until_large(stop);
    if (abandoned || ready.empty()) return;
  }
  if (!sums) sums.emplace(graph, functions);
  current_pass_id();  // draws the id now, so that all threads of the pass see the same id
  large_functions = 0;
  auto* const here = running_pass::innermost();
  std::uint32_t depth = 0;
  for (auto* outer = here->outer(); outer != nullptr; outer = outer->outer()) ++depth;
  warning_relay warnings;
  std::exception_ptr failure;
  {
    const auto run = [=, this, &warnings](job& next) {
      const c10::WarningUtils::WarningHandlerGuard relayed(&warnings);
      const same_passes as_there(here);
      const running_pass there(settings, graph, ready, next.index, notes);
      run_job_elsewhere(next);
    };
    job_board board(run, streams != nullptr, depth);
    try {
      share(board, warnings, stop);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  warnings.replay_and_rethrow(failure);  // no worker runs a job of this pass any more
  workers.busy().store(large_functions > 1, std::memory_order_relaxed);
}

void graph_task::implementation::share(job_board& board, warning_relay& warnings, const std::atomic<bool>* stop) {
  while (!stopped(stop)) {
    for (const auto& done : board.collect()) {
      const entered_stream entered(streams.get(), graph.vertices[done->index], std::move(done->made));
      hand_on(*done);  // throws the function's own error before replay() can throw an error of a warning handler
      warnings.replay();
    }
    if (!ready.empty()) {
      running = ready.pop();
      ++begun;
      hand_over_or_run(board, running);
    } else if (auto next = board.take()) {
      running = next->index;
      const entered_stream entered(streams.get(), graph.vertices[running]);
      run_job_here(*next);
    } else if (!board.wait()) {
      break;
    }
    thread_state->restore();
  }
}

void graph_task::implementation::hand_over_or_run(job_board& board, std::uint32_t index) {
  const plan::vertex& vertex = graph.vertices[index];
  const entered_stream entered(streams.get(), vertex);
  if (!prepare(index)) return;
  auto next = std::make_unique<job>();
  next->index = index;
  next->kind = cost_book::kind_of(*vertex.function, inputs);
  next->inputs.swap(inputs);
  if (lane* const where = lane_for(*next))
    board.add(*where, std::move(next), vertex.sequence);
  else
    run_job_here(*next);
}

// Null for a small function, for the end of a graph, and for a function of an accelerator without a lane.
lane* graph_task::implementation::lane_for(const job& next) const {
  const plan::vertex& vertex = graph.vertices[next.index];
  cpu_workers& workers = *settings.workers;
  if (vertex.edge_count == 0 || workers.costs().cost(next.kind) < workers.grain()) return nullptr;
  const c10::Device device = streams ? vertex.function->device() : c10::Device(at::kCPU);
  return device.is_cpu() ? &workers.cpu_lane() : workers.lane_of(device);
}

void graph_task::implementation::run_job(job& next) {
  const plan::vertex& vertex = graph.vertices[next.index];
  const auto start = clock::now();
  next.outputs = evaluate(*vertex.function, next.inputs, graph.edges.data() + vertex.first_edge);
  next.cost = nanoseconds_since(start);
  settings.workers->costs().note(next.kind, next.cost);
}

// Called on the thread of a worker.
void graph_task::implementation::run_job_elsewhere(job& next) {
  if (streams)
    next.made = streams->run_elsewhere(graph.vertices[next.index], next.outputs, [&] { run_job(next); });
  else
    run_job(next);
}

void graph_task::implementation::run_job_here(job& next) {
  run_job(next);
  thread_state->restore();
  hand_on(next);
}

void graph_task::implementation::hand_on(job& done) {
  const plan::vertex& vertex = graph.vertices[done.index];
  running = done.index;
  if (done.failure) std::rethrow_exception(done.failure);
  large_functions += done.cost >= settings.workers->grain() ? 1 : 0;
  distribute_in_order(vertex, done.outputs);
  if (streams && vertex.edge_count == 0) give_leaf_to_caller(*vertex.function);
}

}  // namespace troupe::engine
