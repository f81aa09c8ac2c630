// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/graph_task.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/SequenceNumber.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>

#include <troupe/engine/anomaly.hpp>
#include <troupe/engine/cpu_workers.hpp>
#include <troupe/engine/describe.hpp>
#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task_implementation.hpp>
#include <troupe/engine/hooks.hpp>
#include <troupe/engine/input_buffer.hpp>
#include <troupe/engine/libtorch_task.hpp>
#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/thread_state.hpp>
#include <troupe/engine/warning_relay.hpp>

namespace troupe::engine {

using torch::autograd::variable_list;

namespace {

// Whether libtorch lets a pass that this thread starts use several threads.
bool may_use_threads() { return c10::AutogradState::get_tls_state().get_multithreading_enabled(); }

}  // namespace

// Adds the gradients of the roots before any other gradient.
void graph_task::implementation::seed() {
  seeded = true;
  for (std::size_t i = 0; i < graph.roots.size(); ++i) {
    const plan::edge to = graph.roots[i];
    if (to.vertex == plan::none) {
      show_to_hooks_of_lone_root();
      continue;
    }
    plan::vertex& root = graph.vertices[to.vertex];
    at::Tensor& slot = slots.at(root.first_slot + to.input);
    at::Tensor gradient = std::move(settings.root_gradients[i]);
    const auto sum = [&] { accumulate(slot, std::move(gradient)); };
    streams ? streams->add(root, root.first_slot + to.input, gradient, sum) : sum();
    root.reached = true;
    if (--root.missing == 0) push(to.vertex);
  }
}

// Calls the tensor hooks of a single root, which retain its gradient too, even if no path leads from the root to an input.
// libtorch does the same.
void graph_task::implementation::show_to_hooks_of_lone_root() {
  const auto& root = settings.roots.front();
  if (settings.roots.size() == 1 && has_tensor_hooks(*root.function)) {
    variable_list gradients(root.function->num_inputs());
    gradients.at(root.input_nr) = std::move(settings.root_gradients.front());
    call_tensor_hooks(*root.function, gradients);
    thread_state->restore();
  }
}

// Puts the inputs of the vertex into `inputs`. Returns false if the caller has nothing to run for the vertex.
bool graph_task::implementation::prepare(std::uint32_t index) {
  const plan::vertex& vertex = graph.vertices[index];
  if ((vertex.marks & plan::source) != 0) {
    distribute<true>(vertex, delivered[vertex.send]);
    delivered[vertex.send].clear();
    return false;
  }
  take_inputs(vertex);
  if ((vertex.marks & plan::captured) != 0) capture(index);
  if ((vertex.marks & plan::needed) == 0) {
    inputs.clear();
    return false;
  }
  const auto is_undefined = [](const at::Tensor& each) { return !each.defined(); };
  if (vertex.edge_count > 0 || std::none_of(inputs.begin(), inputs.end(), is_undefined)) return true;
  return !run_unreached(vertex);
}

void graph_task::implementation::step(std::uint32_t index) {
  if (!prepare(index)) return;
  const plan::vertex& vertex = graph.vertices[index];
  variable_list outputs = evaluate(*vertex.function, inputs, graph.edges.data() + vertex.first_edge);
  sums ? distribute<true>(vertex, outputs) : distribute<false>(vertex, outputs);
  if (inputs.capacity() < outputs.capacity()) {  // the function has kept or returned the memory of its list of inputs
    outputs.clear();
    inputs.swap(outputs);
  }
}

void graph_task::implementation::take_inputs(const plan::vertex& vertex) {
  if (sums)
    for (std::uint32_t i = 0; i < vertex.slot_count; ++i) sums->settle(vertex.first_slot + i, slots[vertex.first_slot + i]);
  const auto first = std::make_move_iterator(slots.begin() + vertex.first_slot);
  inputs.assign(first, first + vertex.slot_count);
}

void graph_task::implementation::capture(std::uint32_t index) {
  if ((graph.vertices[index].marks & plan::needed) == 0) {
    // If the function is needed, its evaluation calls the tensor hooks.
    call_tensor_hooks(*graph.vertices[index].function, inputs);
  }
  auto each = std::lower_bound(graph.captures.begin(), graph.captures.end(), index,
                               [](const plan::capture& a, std::uint32_t b) { return a.vertex < b; });
  for (; each != graph.captures.end() && each->vertex == index; ++each) {
    captures[each->output] = inputs.at(each->input);
    if (!settings.capture_hooks.empty()) call_capture_hooks(each->output);
    if (streams) streams->give_to_caller(captures[each->output]);
  }
}

void graph_task::implementation::call_capture_hooks(std::size_t output) {
  for (const capture_hook& hook : settings.capture_hooks)
    if (hook.input == output) captures[output] = hook.call(captures[output]);
}

template <bool Ordered>
void graph_task::implementation::distribute(const plan::vertex& from, variable_list& outputs) {
  if (outputs.size() != from.edge_count) {
    TORCH_CHECK(false, "troupe: function ", from.function->name(), " has ", outputs.size(), " outputs after its hooks, but ",
                from.edge_count, " edges");
  }
  for (std::uint32_t i = 0; i < from.edge_count; ++i) {
    const plan::edge to = graph.edges[from.first_edge + i];
    if (to.vertex == plan::none) continue;
    if constexpr (Ordered)
      if (sums->is_skipped(from.first_edge + i)) continue;
    plan::vertex& next = graph.vertices[to.vertex];
    TORCH_CHECK(to.input < next.slot_count, "troupe: an edge of ", from.function->name(), " leads to input ", to.input, " of ",
                next.function->name(), ", which has ", next.slot_count);
    const std::uint32_t slot = next.first_slot + to.input;
    if (streams) {
      add_on_stream<Ordered>(next, from.first_edge + i, slot, std::move(outputs[i]));
    } else if constexpr (Ordered) {
      next.reached = true;
      sums->add(from.first_edge + i, slot, slots[slot], std::move(outputs[i]));
    } else {
      accumulate(slots[slot], std::move(outputs[i]));
    }
    if (--next.missing == 0) push(to.vertex);
  }
}

void graph_task::implementation::distribute_in_order(const plan::vertex& from, variable_list& outputs) {
  distribute<true>(from, outputs);
}

// Runs one vertex under a profiler or in anomaly mode.
void graph_task::implementation::step_watched(std::uint32_t index) {
  RECORD_FUNCTION(c10::str("autograd::engine::evaluate_function: ", graph.vertices[index].function->name()),
                  c10::ArrayRef<const c10::IValue>());
  notes.made_from = at::sequence_number::peek();
  streams ? step_on_stream(index) : step(index);
}

// Runs one vertex in a pass that uses an accelerator.
void graph_task::implementation::step_on_stream(std::uint32_t index) {
  const plan::vertex& vertex = graph.vertices[index];
  const entered_stream entered(streams.get(), vertex);
  step(index);
  if (vertex.edge_count == 0) give_leaf_to_caller(*vertex.function);
}

// For a pass that creates a graph over several nodes: finds, for each vertex, the function that gives the vertex its last
// gradient. place_while_running() needs that function.
void graph_task::implementation::note_producers() {
  producers.resize(graph.edges.size());
  for (std::uint32_t i = 0; i < graph.vertices.size(); ++i) {
    const plan::vertex& vertex = graph.vertices[i];
    std::fill_n(producers.begin() + vertex.first_edge, vertex.edge_count, i);
  }
  last_producer.resize(graph.vertices.size(), plan::none);
  if (sums) {  // in serial order, the last sum of a vertex shows its last producer; a dropped send makes no sum
    sums->on_sum([this](std::uint32_t edge, std::uint64_t from) {
      last_producer[graph.edges[edge].vertex] = producers[edge];
      program_place place = settings.recorder->place_of(order->key(*graph.vertices[producers[edge]].function));
      place.insert(place.end(), {recording_order::last - 1, edge - graph.vertices[producers[edge]].first_edge});
      settings.recorder->note(from, std::move(place));
    });
    return;
  }
  const auto runs_later = [this](std::uint32_t a, std::uint32_t b) {
    const plan::vertex& x = graph.vertices[a];
    const plan::vertex& y = graph.vertices[b];
    return x.rank != y.rank ? x.rank < y.rank : x.sequence < y.sequence;
  };
  for (std::uint32_t edge = 0; edge < graph.edges.size(); ++edge) {
    if (const std::uint32_t to = graph.edges[edge].vertex; to != plan::none) {
      std::uint32_t& last = last_producer[to];
      last = last == plan::none || runs_later(producers[edge], last) ? producers[edge] : last;
    }
  }
}

// Returns the program place of the functions that are recorded while this function runs.
program_place graph_task::implementation::place_while_running(std::uint32_t index) const {
  const torch::autograd::Node& function = *graph.vertices[index].function;
  if (function.sequence_nr() != recording_order::last) return settings.recorder->place_of(order->key(function));
  // In one process, the accumulation function of a leaf runs right after the last function that gives the leaf a gradient.
  const std::uint32_t before = last_producer[index];
  program_place place =
    settings.recorder->place_of(before == plan::none ? program_place{} : order->key(*graph.vertices[before].function));
  place.insert(place.end(), {recording_order::last - 1, recording_order::last - 1});
  return place;
}

void graph_task::implementation::step_recorded(std::uint32_t index, bool watched) {
  const std::uint64_t from = at::sequence_number::peek();
  watched ? step_watched(index) : streams ? step_on_stream(index) : step(index);
  if (at::sequence_number::peek() > from) settings.recorder->note(from, place_while_running(index));
}

void graph_task::implementation::give_leaf_to_caller(torch::autograd::Node& function) {
  if (const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(&function))
    streams->give_to_caller(settings.leaves != nullptr ? settings.leaves->find(leaf->variable) : leaf->variable.grad());
}

template <bool Ordered>
void graph_task::implementation::add_on_stream(plan::vertex& next, std::uint32_t edge, std::uint32_t slot, at::Tensor&& value) {
  if constexpr (Ordered) {
    next.reached = true;
    streams->add(next, slot, value, [&] { sums->add(edge, slot, slots[slot], std::move(value)); });
  } else {
    streams->add(next, slot, slots[slot], std::move(value));
  }
}

void graph_task::implementation::abandon() noexcept {
  abandoned = true;
  seeded = true;
  waiting = 0;
  ready.clear();
  inputs.clear();
  slots.clear();
  delivered.clear();
  settings.root_gradients.clear();
  if (sums) sums->clear();
}

void graph_task::implementation::fail(std::uint32_t index) {
  abandon();
  if (index != plan::none) {
    auto& function = *graph.vertices[index].function;
    failed = function.name();
    if (torch::autograd::AnomalyMode::is_enabled()) {
      trace = print_trace(function);
      if (const auto* made = order ? order->find(function) : nullptr) calls = made->calls;
    }
  }
}

graph_task::graph_task(graph_task_settings settings) : implementation_(std::make_unique<implementation>(std::move(settings))) {}
graph_task::~graph_task() = default;
graph_task::graph_task(graph_task&&) noexcept = default;
graph_task& graph_task::operator=(graph_task&&) noexcept = default;

void graph_task::run(const std::atomic<bool>* stop) {
  auto& self = *implementation_;
  if (self.abandoned) return;
  if (torch::autograd::AnomalyMode::is_enabled()) {
    if (auto* outer = running_pass::innermost(); outer != nullptr && outer->current_function() != nullptr)
      adopt_functions(*outer->current_function(), outer->notes().made_from, self.graph);
  }
  if (!self.settings.in_libtorch_task && running_pass::depth_of_stack() >= most_passes_on_a_stack)
    on_fresh_stack([&] { self.run_here(stop); });
  else
    self.run_here(stop);
}

void graph_task::implementation::run_here(const std::atomic<bool>* stop) {
  std::optional<at::ThreadLocalStateGuard> as_at_home;
  std::optional<c10::WarningUtils::WarningHandlerGuard> relayed;
  if (home_state && home != std::this_thread::get_id()) {
    as_at_home.emplace(*home_state);
    if (settings.warnings != nullptr) relayed.emplace(settings.warnings);
  }
  const bool leaves_out = needs_libtorch_task();
  if (leaves_out || asks_libtorch) {
    auto later = inside_libtorch_task(leaves_out ? &graph : nullptr, settings.keep_graph, settings.create_graph, [&] {
      run_shown(stop);
      return !abandoned && waiting == 0;
    });
    for (auto& each : later) notes.queue(std::move(each));
  } else {
    run_shown(stop);
  }
}

// libtorch's functions ask libtorch's current graph task which of their outputs are used. A pass that does not use some outputs
// needs such a task. A pass that uses all outputs needs one only inside another pass. Without it, its functions would get the
// answers for the outer pass.
bool graph_task::implementation::needs_libtorch_task() const {
  if (settings.in_libtorch_task || graph.leaves_out_outputs) return !settings.in_libtorch_task;
  const auto* around = torch::autograd::get_current_graph_task_exec_info();
  return around != nullptr && !around->empty();
}

// Whether some function of the graph may ask for libtorch's current graph task. Hooks and a user's functions may, for example
// to queue a callback.
bool graph_task::implementation::may_ask_libtorch() const {
  return std::any_of(graph.vertices.begin(), graph.vertices.end(), runs_code_of_user);
}

namespace {

// A function of Python asks its class, and throws if that has no such attribute.
bool is_traceable(torch::autograd::Node& function) noexcept try { return function.is_traceable(); } catch (...) {
  return false;
}

}  // namespace

bool graph_task::implementation::runs_code_of_user(const plan::vertex& each) {
  torch::autograd::Node& function = *each.function;
  const bool is_of_user = each.edge_count > 0 && (each.marks & plan::source) == 0 && !is_traceable(function);
  return is_of_user || !function.tensor_pre_hooks().empty() || !function.pre_hooks().empty() ||
         !function.post_hooks().empty() || function.tensor_post_acc_grad_hooks() != nullptr;
}

void graph_task::implementation::run_shown(const std::atomic<bool>* stop) {
  const c10::AutoGradMode grad_mode(settings.create_graph);
  const running_pass here(settings, graph, ready, running, notes);
  thread_state_keeper keeper;
  thread_state = &keeper;
  const auto keeper_ends = c10::make_scope_exit([this] { thread_state = nullptr; });
  evaluate.anomaly = torch::autograd::AnomalyMode::is_enabled() ? &notes : nullptr;
  try {
    run_in_order(stop);
    if (!abandoned && waiting == 0) {
      check_all_ran();
      run_callbacks();  // the caller's streams wait for the streams of the pass by now
    }
  } catch (c10::Error& error) {
    fail(running);
    if (streams && running != plan::none) add_failed_function(error, *graph.vertices[running].function);
    if (!trace.empty()) error.add_context(trace);
    throw;
  } catch (...) {
    fail(running);
    throw;
  }
}

void graph_task::implementation::run_in_order(const std::atomic<bool>* stop) {
  const pass_streams in_order(streams.get());
  if (!seeded) seed();
  run_ready(stop);
  running = plan::none;
}

void graph_task::implementation::run_ready(const std::atomic<bool>* stop) {
  // The check is made before any function runs. If a function starts a profiler, the profiler observes only later calls of
  // run().
  const bool watched = evaluate.anomaly != nullptr || at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value();
  if (settings.workers != nullptr && may_use_threads() && !settings.create_graph && !watched && !graph.leaves_out_outputs) {
    settings.workers->check_process();
    run_beside(stop);
  } else {
    run_serially(stop, watched);
  }
}

void graph_task::implementation::run_serially(const std::atomic<bool>* stop, bool watched) {
  while (!ready.empty()) {
    if (stopped(stop)) return;
    running = ready.pop();
    ++begun;
    if (!producers.empty())
      step_recorded(running, watched);
    else if (watched)
      step_watched(running);
    else if (streams)
      step_on_stream(running);
    else
      step(running);
    thread_state->restore();
  }
}

bool graph_task::implementation::stopped(const std::atomic<bool>* stop) {
  if (stop == nullptr || !stop->load(std::memory_order_relaxed)) return false;
  abandon();
  return true;
}

// Throws if a function still waits for a gradient. A function in a cycle does, because it waits for itself. The error text
// begins with the words of libtorch's error text.
void graph_task::implementation::check_all_ran() {
  if (begun == graph.vertices.size()) return;
  const auto waits = [this](const plan::vertex& each) {
    return each.missing > 0 && each.executes() && (each.reached || settings.sends.empty());
  };
  const auto found = std::find_if(graph.vertices.begin(), graph.vertices.end(), waits);
  if (found == graph.vertices.end()) return;
  running = static_cast<std::uint32_t>(found - graph.vertices.begin());
  TORCH_CHECK(false, "could not compute gradients for some functions: '", found->function->name(), "' still waits for ",
              found->missing, found->missing == 1 ? " gradient" : " gradients",
              ", and nothing is left to run. The graph has a cycle: look for edges that were set by hand");
}

// A callback may queue more callbacks.
void graph_task::implementation::run_callbacks() {
  for (auto all = notes.take_callbacks(); !all.empty(); all = notes.take_callbacks())
    for (auto& call : all) std::exchange(call, nullptr)();
}

void graph_task::use_workers(cpu_workers* workers) noexcept { implementation_->settings.workers = workers; }

bool graph_task::finished() const noexcept {
  return implementation_->seeded && implementation_->ready.empty() && implementation_->waiting == 0;
}

std::size_t graph_task::waiting() const noexcept { return implementation_->waiting; }

std::uint64_t graph_task::functions_begun() const noexcept { return implementation_->begun; }

std::string graph_task::failed_function() const { return implementation_->failed; }

std::string graph_task::failed_trace() const { return implementation_->trace; }

std::string graph_task::failed_calls() const { return implementation_->calls; }

void graph_task::abandon() { implementation_->abandon(); }

torch::autograd::Node* graph_task::running() const noexcept {
  const std::uint32_t index = implementation_->running;
  return index == plan::none ? nullptr : implementation_->graph.vertices[index].function;
}

std::vector<at::Tensor> graph_task::open_sums() {
  auto& self = *implementation_;
  if (self.running == plan::none) return {};
  const plan::vertex& from = self.graph.vertices[self.running];
  std::vector<at::Tensor> open(from.edge_count);
  if (self.sums || self.settings.create_graph) return open;
  for (std::uint32_t i = 0; i < from.edge_count; ++i) {
    const plan::edge to = self.graph.edges[from.first_edge + i];
    if (to.vertex == plan::none) continue;
    const plan::vertex& next = self.graph.vertices[to.vertex];
    if (to.input >= next.slot_count) continue;  // the edge throws when the function has run
    const std::uint32_t slot = next.first_slot + to.input;
    const at::Tensor& sum = self.slots[slot];
    if (!sum.defined() || !is_ours_to_change(sum)) continue;
    if (self.streams && !self.streams->is_on_this_stream(next, slot, sum)) continue;
    open[i] = sum;
    self.notes.with_open_sums = self.running;
  }
  return open;
}

program_place graph_task::place_now() const {
  const auto& self = *implementation_;
  return self.producers.empty() || self.running == plan::none ? program_place{} : self.place_while_running(self.running);
}

const plan& graph_task::graph() const noexcept { return implementation_->graph; }

std::vector<at::Tensor> graph_task::take_captures() { return std::move(implementation_->captures); }

}  // namespace troupe::engine
