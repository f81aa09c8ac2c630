// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/split_backward.hpp"

#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace troupe::apps::charlm {

namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;
using micro_batch_ptr = std::shared_ptr<stage_turns::micro_batch>;

/// Passes on the gradients of the tensors of enter(). Leads to each linear_weights too, which therefore runs later.
class backward_ends : public Node {
 public:
  backward_ends(edge_list edges, micro_batch_ptr turns) : Node(std::move(edges)), turns_(std::move(turns)) {
    topological_nr_ += above_weights;
  }
  std::string name() const override { return "BackwardEnds"; }

  /// To be called in the forward. libtorch allows no new edge of a function that has a parent, because the topological number
  /// would have to grow. The topological number of this function is high enough from the start.
  void lead_to(Edge weights) { next_edges_.push_back(std::move(weights)); }

 private:
  static constexpr std::uint64_t above_weights = 1 << 20;

  variable_list apply(variable_list&& gradients) override {
    turns_->end(stage_work::backward);
    variable_list result = std::move(gradients);
    result.resize(num_outputs());
    return result;
  }

  micro_batch_ptr turns_;
};

class backward_begins : public Node {
 public:
  backward_begins(edge_list edges, micro_batch_ptr turns) : Node(std::move(edges)), turns_(std::move(turns)) {}
  std::string name() const override { return "BackwardBegins"; }

 private:
  variable_list apply(variable_list&& gradients) override {
    turns_->ask(stage_work::backward).get();
    return {gradients[0]};
  }

  micro_batch_ptr turns_;
};

at::Tensor rows_of(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

/// The inputs are the gradient of the layer's output, and one of backward_ends, which is never defined.
class linear_weights : public Node {
 public:
  linear_weights(edge_list edges, const at::Tensor& input, micro_batch_ptr turns)
      : Node(runs_last, std::move(edges)), input_(input.detach()), turns_(std::move(turns)) {
    turns_->expect_weights();
  }
  std::string name() const override { return "LinearWeights"; }
  void release_variables() override { input_.reset(); }

 private:
  // An engine runs the ready function of the highest sequence number first.
  static constexpr std::uint64_t runs_last = 0;

  variable_list apply(variable_list&& gradients) override {
    turns_->ask(stage_work::weights).get();
    const auto rows = rows_of(gradients[0]);
    variable_list result{rows.t().mm(rows_of(input_)), rows.sum(0)};
    turns_->end(stage_work::weights);
    return result;
  }

  at::Tensor input_;
  micro_batch_ptr turns_;
};

class linear_input : public Node {
 public:
  linear_input(edge_list edges, const at::Tensor& input, const at::Tensor& weight)
      : Node(std::move(edges)), sizes_(input.sizes().vec()), weight_(weight.detach()) {}
  std::string name() const override { return "LinearInput"; }

 private:
  variable_list apply(variable_list&& gradients) override {
    return {rows_of(gradients[0]).mm(weight_).view(sizes_), gradients[0]};
  }

  std::vector<std::int64_t> sizes_;
  at::Tensor weight_;
};

}  // namespace

std::vector<at::Tensor> split_backward::enter(const std::vector<at::Tensor>& tensors) {
  edge_list edges;
  for (const auto& each : tensors) edges.push_back(torch::autograd::impl::gradient_edge(each));
  ends_ = engine::make_node<backward_ends>(std::move(edges), turns_);
  variable_list entered;
  for (const auto& each : tensors) torch::autograd::set_history(entered.emplace_back(each.detach()), ends_);
  return entered;
}

at::Tensor split_backward::linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  if (!ends_) throw std::logic_error("expected a call of split_backward::enter before split_backward::linear");
  auto output = at::linear(input.detach(), weight.detach(), bias.detach());
  auto weights = engine::make_node<linear_weights>(torch::autograd::collect_next_edges(weight, bias), input, turns_);
  weights->add_input_metadata(output);
  static_cast<backward_ends&>(*ends_).lead_to({weights, weights->add_input_metadata(Node::undefined_input())});
  auto function = engine::make_node<linear_input>(
    edge_list{torch::autograd::impl::gradient_edge(input), Edge(std::move(weights), 0)}, input, weight);
  torch::autograd::set_history(output, function);
  return output;
}

at::Tensor split_backward::leave(const at::Tensor& output) {
  auto begins = engine::make_node<backward_begins>(edge_list{torch::autograd::impl::gradient_edge(output)}, turns_);
  auto result = output.detach();
  torch::autograd::set_history(result, begins);
  return result;
}

}  // namespace troupe::apps::charlm
