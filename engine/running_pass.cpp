// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/running_pass.hpp>

#include <exception>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/util/Exception.h>

#include <troupe/engine/current_streams.hpp>
#include <troupe/engine/describe.hpp>
#include <troupe/engine/drop_in/task_state.hpp>
#include <troupe/engine/graph_task_settings.hpp>
#include <troupe/engine/lane.hpp>
#include <troupe/engine/ready_queue.hpp>
#include <troupe/engine/warning_relay.hpp>

namespace troupe::engine {

namespace {

struct passes_of_thread {
  running_pass* innermost = nullptr;
  std::uint32_t depth = 0;
};

thread_local passes_of_thread here;

}  // namespace

void pass_notes::queue(std::function<void()> callback) {
  const checked_lock lock(queueing);
  callbacks.push_back(std::move(callback));
  has_queued.store(true, std::memory_order_release);
}

std::vector<std::function<void()>> pass_notes::take_callbacks() {
  if (!has_queued.load(std::memory_order_acquire)) return {};
  const checked_lock lock(queueing);
  return std::exchange(callbacks, {});
}

bool pass_notes::has_callbacks() {
  if (asks_libtorch && has_libtorch_callbacks()) return true;
  const checked_lock lock(queueing);
  return !callbacks.empty();
}

running_pass::running_pass(const graph_task_settings& settings, const plan& graph, const ready_queue& ready,
                           const std::uint32_t& function, pass_notes& notes) noexcept
    : settings_(settings), graph_(graph), ready_(ready), function_(function), notes_(notes), outer_(here.innermost) {
  here.innermost = this;
  ++here.depth;
}

running_pass::~running_pass() {
  here.innermost = outer_;
  --here.depth;
}

running_pass* running_pass::innermost() noexcept { return here.innermost; }

std::uint32_t running_pass::depth_of_stack() noexcept { return here.depth; }

bool running_pass::all_of_each_graph_runs() const noexcept {
  for (const running_pass* each = this; each != nullptr; each = each->outer_)
    if (!each->settings_.inputs.empty() || each->settings_.leaves != nullptr) return false;
  return true;
}

running_pass::way_out running_pass::leaves_by() noexcept {
  const running_pass* const pass = here.innermost;
  if (pass == nullptr) return {};
  const auto* const recv = pass->current_function();
  const bool more = !pass->ready_.empty() || pass->notes_.has_functions_away || pass->notes_.has_callbacks() ||
                    (recv != nullptr && !recv->post_hooks().empty());
  return {pass->settings_.emit_to, &pass->notes_.unreached, more};
}

// The depth does not change, because it counts the passes on the stack of this thread, and `outer` may be on the stack of
// another thread.
same_passes::same_passes(running_pass* outer, surroundings* around) noexcept
    : innermost_(std::exchange(here.innermost, outer)), around_(std::exchange(surroundings::current, around)) {}

same_passes::~same_passes() {
  here.innermost = innermost_;
  surroundings::current = around_;
}

void on_fresh_stack(const std::function<void()>& what) {
  const at::ThreadLocalState state;
  const current_streams streams;
  running_pass* const outer = running_pass::innermost();
  surroundings* const around = surroundings::current;
  lane* const served = lane::of_this_thread();
  warning_relay warnings;
  std::exception_ptr thrown;
  const auto run = [&] {
    const c10::WarningUtils::WarningHandlerGuard relayed(&warnings);
    try {
      at::init_num_threads();
      streams.set();
      const at::ThreadLocalStateGuard as_there(state);
      const same_passes here(outer, around);
      lane::serve_on_this_thread(served);
      what();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  std::thread worker;
  try {
    worker = std::thread(run);
  } catch (const std::system_error& refused) {
    throw std::system_error(refused.code(),
                            "passes are nested so deeply that one needs a thread of its own, and the system gives none");
  }
  worker.join();
  warnings.replay_and_rethrow(thrown);
}

}  // namespace troupe::engine
