// SPDX-License-Identifier: BSD-3-Clause
#include "engine/both_ways.hpp"

#include <algorithm>
#include <utility>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/current_pass.hpp>

namespace troupe::test {

using torch::autograd::Engine;
using torch::autograd::Node;

namespace {

std::vector<std::string> names_of(const std::vector<Node*>& functions) {
  std::vector<std::string> names;
  names.reserve(functions.size());
  for (const Node* each : functions) names.push_back(each->name());
  return names;
}

}  // namespace

void way::backward(const tensors& roots, const tensors& gradients, bool keep_graph, bool create_graph,
                   const tensors& inputs) const {
  is_troupes_ ? troupe::backward(roots, gradients, keep_graph, create_graph, inputs)
              : torch::autograd::backward(roots, gradients, keep_graph || create_graph, create_graph, inputs);
}

way::tensors way::grad(const tensors& roots, const tensors& inputs, const tensors& gradients, bool keep_graph,
                       bool create_graph, bool allow_unused) const {
  return is_troupes_ ? troupe::grad(roots, inputs, gradients, keep_graph, create_graph, allow_unused)
                     : torch::autograd::grad(roots, inputs, gradients, keep_graph || create_graph, create_graph, allow_unused);
}

void way::queue_callback(std::function<void()> callback) const {
  is_troupes_ ? troupe::queue_callback(std::move(callback)) : Engine::get_default_engine().queue_callback(std::move(callback));
}

bool way::is_checkpoint_valid() const {
  return is_troupes_ ? troupe::is_checkpoint_valid() : Engine::get_default_engine().is_checkpoint_valid();
}

bool way::keeps_graph() const {
  return is_troupes_ ? current_pass_keeps_graph() : torch::autograd::get_current_graph_task_keep_graph();
}

bool way::is_in_a_pass() const {
  return (is_troupes_ ? current_pass_id() : torch::autograd::get_current_graph_task_id()) != -1;
}

std::string way::current_function() const {
  const auto function = is_troupes_ ? troupe::current_function() : torch::autograd::get_current_node();
  return function ? function->name() : "none";
}

std::vector<std::string> way::functions() const {
  std::vector<Node*> all = current_pass_functions();
  if (!is_troupes_) {
    const auto* theirs = torch::autograd::get_current_graph_task_nodes_in_graph();
    all.assign(theirs->begin(), theirs->end());
  }
  auto names = names_of(all);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> way::order() const {
  return names_of(is_troupes_ ? current_pass_order() : torch::autograd::get_current_graph_task_execution_order());
}

both_traces both_ways(const std::function<std::vector<std::string>(const way&)>& run) {
  both_traces traces;
  traces.libtorch = run(way(false));
  traces.troupe = run(way(true));
  return traces;
}

}  // namespace troupe::test
