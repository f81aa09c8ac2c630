// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/current_pass.hpp>

#include <atomic>
#include <utility>

#include <c10/util/Exception.h>

#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/serial_order.hpp>

namespace troupe {

using engine::plan;
using engine::running_pass;
using torch::autograd::Node;

void queue_callback(std::function<void()> callback) {
  running_pass* const pass = running_pass::innermost();
  TORCH_CHECK(pass != nullptr,
              "troupe::queue_callback: no backward pass runs on this thread. Call it from a function or a hook");
  pass->notes().queue(std::move(callback));
}

std::int64_t current_pass_id() {
  static std::atomic<std::int64_t> next{0};
  running_pass* const pass = running_pass::innermost();
  if (pass == nullptr) return -1;
  std::atomic<std::int64_t>& known = pass->notes().id;
  std::int64_t id = known.load(std::memory_order_relaxed);
  if (id < 0) {
    const std::int64_t drawn = next.fetch_add(1, std::memory_order_relaxed);
    if (known.compare_exchange_strong(id, drawn, std::memory_order_relaxed)) id = drawn;
  }
  return id;
}

bool current_pass_keeps_graph() {
  const running_pass* const pass = running_pass::innermost();
  return pass == nullptr || pass->settings().keep_graph;
}

std::vector<Node*> current_pass_functions() {
  std::vector<Node*> functions;
  if (const running_pass* const pass = running_pass::innermost()) {
    functions.reserve(pass->graph().vertices.size());
    for (const plan::vertex& each : pass->graph().vertices) functions.push_back(each.function);
  }
  return functions;
}

std::vector<Node*> current_pass_order() {
  std::vector<Node*> functions;
  if (const running_pass* const pass = running_pass::innermost()) {
    const plan& graph = pass->graph();
    for (const std::uint32_t index : engine::serial_order(graph)) functions.push_back(graph.vertices[index].function);
  }
  return functions;
}

bool current_pass_executes(const Node& function) {
  const running_pass* const pass = running_pass::innermost();
  if (pass == nullptr) return true;
  const std::uint32_t index = pass->graph().find(function);
  return index != plan::none && pass->graph().vertices[index].executes();
}

bool current_pass_needs_output(const Node& function, std::size_t index) {
  const auto& edges = function.next_edges();
  TORCH_CHECK(index < edges.size(), "troupe::current_pass_needs_output: ", function.name(), " has ", edges.size(),
              " outputs, but output ", index, " is asked for");
  return edges[index].is_valid() && current_pass_executes(*edges[index].function);
}

engine::node_pointer current_function() {
  const running_pass* const pass = running_pass::innermost();
  Node* const function = pass == nullptr ? nullptr : pass->current_function();
  return function == nullptr ? nullptr : function->getptr();
}

bool is_checkpoint_valid() {
  const running_pass* const pass = running_pass::innermost();
  return pass == nullptr || pass->all_of_each_graph_runs();
}

}  // namespace troupe
