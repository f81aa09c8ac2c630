// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/libtorch_task.hpp>

#include <exception>
#include <limits>
#include <string>

#include <ATen/EmptyTensor.h>
#include <torch/csrc/autograd/engine.h>

#include <troupe/engine/drop_in/task_state.hpp>
#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/torch_compat.hpp>

namespace troupe::engine {

using torch::autograd::Engine;
using torch::autograd::variable_list;

namespace {

/// The only function of the graph that libtorch's engine runs. It calls `what`. The constructor gives the sequence number, so
/// the thread's counter of sequence numbers does not advance.
struct enclosed_pass final : torch::autograd::Node {
  explicit enclosed_pass(const at::Tensor& gradient) : Node(std::numeric_limits<std::uint64_t>::max()) {
    add_input_metadata(gradient);
  }
  std::string name() const override { return "troupe::pass"; }

  // Catches every exception, because libtorch would not pass on all exceptions unchanged.
  variable_list apply(variable_list&&) override {
    called = true;
    bool is_over = false;
    try {
      const same_passes here(outer, around);
      graph != nullptr ? publish(*graph, true, create_graph) : publish_nothing(create_graph);
      is_over = (*what)();
    } catch (...) {
      thrown = std::current_exception();
    }
    if (!is_over) callbacks = take_callbacks();
    return {};
  }

  const plan* graph = nullptr;
  const std::function<bool()>* what = nullptr;
  running_pass* outer = nullptr;
  surroundings* around = nullptr;
  bool create_graph = false;
  bool called = false;
  std::vector<std::function<void()>> callbacks;  // callbacks to run later, when the pass is over
  std::exception_ptr thrown;
};

}  // namespace

std::vector<std::function<void()>> inside_libtorch_task(const plan* graph, bool keep_graph, bool create_graph,
                                                        const std::function<bool()>& what) {
  const at::Tensor gradient(at::detail::empty_cpu({}, at::kFloat, false, std::nullopt));
  const auto function = make_node<enclosed_pass>(gradient);
  function->graph = graph;
  function->what = &what;
  function->outer = running_pass::innermost();
  function->around = surroundings::current;
  function->create_graph = create_graph;
  const torch::autograd::edge_list edges{{function, 0}};
  std::exception_ptr failure;  // from a final callback or a warning handler
  try {
    // Calls the base class's execute(), not an override: Python's override refuses callers that hold the GIL, and the override
    // of an installed troupe engine counts passes. `inputs` is set so that libtorch makes exec info. create_graph is off so
    // that libtorch does not warn of graphs in `.grad`.
    Engine::get_default_engine().Engine::execute(edges, {gradient}, keep_graph, false, true, edges);
  } catch (...) {
    failure = std::current_exception();
  }
  if (!function->called)
    what();  // libtorch's engine cannot run here
  else if (function->thrown)
    std::rethrow_exception(function->thrown);
  else if (failure)
    std::rethrow_exception(failure);
  return std::move(function->callbacks);
}

}  // namespace troupe::engine
