// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/drop_in/task_state.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include <c10/core/AutogradState.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/headeronly/version.h>

namespace troupe::engine {

using torch::autograd::GraphTask;
using torch::autograd::Node;

namespace {

// Returns libtorch's current graph task. libtorch gives only the address of one member of that graph task.
GraphTask& current_task() {
  const auto* exec_info = torch::autograd::get_current_graph_task_exec_info();
  TORCH_INTERNAL_ASSERT(exec_info != nullptr, "troupe: not inside a pass of libtorch's engine");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  constexpr std::size_t offset = offsetof(GraphTask, exec_info_);
#pragma GCC diagnostic pop
  auto& task = *reinterpret_cast<GraphTask*>(reinterpret_cast<std::uintptr_t>(exec_info) - offset);
  // The identifier is the last member: in another libtorch it is elsewhere.
  TORCH_CHECK(static_cast<int>(task.id_) == torch::autograd::get_current_graph_task_id(),
              "troupe: expected the graph tasks of libtorch " TORCH_VERSION
              ", but this libtorch has others; use the libtorch that troupe was built with");
  return task;
}

// The list of functions of the thread's last pass. The next pass uses its elements again, because to allocate and free an
// element takes longer than all else that publish() does for a function.
thread_local std::unordered_set<Node*> spare;
constexpr std::size_t most_to_keep = 65'536;

void insert(std::unordered_set<Node*>& functions, Node* next) {
  if (spare.empty()) {
    functions.insert(next);
  } else {
    auto element = spare.extract(spare.begin());
    element.value() = next;
    functions.insert(std::move(element));
  }
}

void publish_exec_info(const plan& graph, GraphTask& task) {
  task.exec_info_.reserve(task.exec_info_.size() + graph.vertices.size());
  for (const plan::vertex& each : graph.vertices) task.exec_info_[each.function].needed_ = (each.marks & plan::needed) != 0;
  for (const plan::capture& each : graph.captures) {
    auto& captures = task.exec_info_[graph.vertices[each.vertex].function].captures_;
    if (!captures) captures = std::make_unique<std::vector<GraphTask::ExecInfo::Capture>>();
    captures->emplace_back(static_cast<int>(each.input), static_cast<int>(each.output));
  }
}

// Sets the data from which libtorch computes the execution order. Called only for a pass on one thread, because libtorch tells
// the order only for such a pass. libtorch counts the edges between functions, but not the edges from the roots. Therefore a
// root is twice in libtorch's order if another function leads to that root.
void publish_order(const plan& graph, GraphTask& task) {
  task.dependencies_.clear();
  task.graph_roots_.clear();
  for (const plan::vertex& each : graph.vertices) task.dependencies_[each.function] = static_cast<int>(each.missing);
  for (const plan::edge& root : graph.roots) {
    if (root.vertex != plan::none) {
      Node* const function = graph.vertices[root.vertex].function;
      task.graph_roots_.push_back(function);
      --task.dependencies_[function];
    }
  }
}

}  // namespace

void publish(const plan& graph, bool trimmed, bool create_graph) {
  GraphTask& task = current_task();
  // If the pass has a single root, libtorch leaves the root out of nodes_in_graph_.
  const std::uint32_t left_out = graph.roots.size() == 1 ? graph.roots[0].vertex : plan::none;
  if (graph.vertices.size() > 1) task.nodes_in_graph_.reserve(graph.vertices.size());
  for (std::uint32_t i = 0; i < graph.vertices.size(); ++i)
    if (i != left_out) insert(task.nodes_in_graph_, graph.vertices[i].function);
  if (trimmed) {
    publish_exec_info(graph, task);
    task.thread_locals_.set_grad_mode(create_graph);
  }
  if (!c10::AutogradState::get_tls_state().get_multithreading_enabled()) publish_order(graph, task);
}

void withdraw_functions() {
  GraphTask& task = current_task();
  const std::scoped_lock lock(task.final_callbacks_lock_);
  if (task.final_callbacks_.empty() && task.nodes_in_graph_.size() <= most_to_keep) spare = std::move(task.nodes_in_graph_);
}

void publish_nothing(bool create_graph) {
  GraphTask& task = current_task();
  task.exec_info_.clear();
  task.thread_locals_.set_grad_mode(create_graph);
}

std::vector<std::function<void()>> take_callbacks() {
  GraphTask& task = current_task();
  const std::scoped_lock lock(task.final_callbacks_lock_);
  return std::exchange(task.final_callbacks_, {});
}

bool has_libtorch_callbacks() {
  if (torch::autograd::get_current_graph_task_exec_info() == nullptr) return false;
  GraphTask& task = current_task();
  const std::scoped_lock lock(task.final_callbacks_lock_);
  return !task.final_callbacks_.empty();
}

}  // namespace troupe::engine
