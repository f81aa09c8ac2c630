// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/backward.hpp>

#include <utility>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/roots.hpp>
#include <troupe/engine/torch_compat.hpp>

namespace troupe {

namespace {

torch::autograd::edge_list input_edges(const std::vector<at::Tensor>& inputs, bool retain) {
  torch::autograd::edge_list edges;
  edges.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& input = inputs[i];
    TORCH_CHECK(input.defined() && input.requires_grad(), "troupe: input ", i, " of the pass does not require grad");
    if (retain) input.retain_grad();
    auto function = input.grad_fn();
    if (!function) function = torch::autograd::impl::try_get_grad_accumulator(input);
    if (!function) {
      // No graph uses this leaf, so no path leads to the leaf. A function that nothing reaches stands for the leaf.
      function = engine::make_node<torch::autograd::Identity>();
    }
    edges.emplace_back(std::move(function), static_cast<std::uint32_t>(input.output_nr()));
  }
  return edges;
}

engine::graph_task_settings settings_for(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients,
                                         const pass_options& options, const std::vector<at::Tensor>& inputs, bool capture) {
  engine::graph_task_settings settings;
  settings.roots = engine::root_edges(roots);
  settings.root_gradients = engine::root_gradients(roots, gradients);
  settings.inputs = input_edges(inputs, !capture);
  settings.capture = capture;
  settings.keep_graph = options.keep_graph || options.create_graph;
  settings.create_graph = options.create_graph;
  settings.workers = options.workers;
  settings.one_thread = true;
  return settings;
}

}  // namespace

void backward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients, const pass_options& options) {
  if (options.create_graph) {
    TORCH_WARN_ONCE(
      "troupe: backward() with create_graph makes each leaf and its gradient hold each other, so neither is freed. ",
      "Use grad(), or reset the gradients of the leaves afterwards.");
  }
  engine::graph_task(settings_for(roots, gradients, options, options.inputs, false)).run();
}

void backward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients, bool keep_graph,
              bool create_graph, const std::vector<at::Tensor>& inputs) {
  backward(roots, gradients, pass_options{.keep_graph = keep_graph, .create_graph = create_graph, .inputs = inputs});
}

std::vector<at::Tensor> grad(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& gradients, const pass_options& options) {
  TORCH_CHECK_VALUE(!inputs.empty(), "troupe: grad() needs at least one input");
  TORCH_CHECK_VALUE(options.inputs.empty(), "troupe: grad() takes its inputs as an argument; leave those of the options empty");
  engine::graph_task task(settings_for(roots, gradients, options, inputs, true));
  task.run();
  std::vector<at::Tensor> captures = task.take_captures();
  for (std::size_t i = 0; i < captures.size() && !options.allow_unused; ++i) {
    TORCH_CHECK(captures[i].defined(), "troupe: input ", i, " of grad() (shape ", inputs[i].sizes(),
                ") was not used in the graph of the roots; set allow_unused for an undefined gradient instead");
  }
  return captures;
}

std::vector<at::Tensor> grad(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& gradients, bool keep_graph, bool create_graph, bool allow_unused) {
  return grad(roots, inputs, gradients,
              pass_options{.keep_graph = keep_graph, .create_graph = create_graph, .inputs = {}, .allow_unused = allow_unused});
}

}  // namespace troupe
