// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/split_backward.hpp"

#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <troupe/engine/torch_compat.hpp>

namespace troupe::apps::charlm {

namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;
using micro_batch_ptr = std::shared_ptr<stage_turns::micro_batch>;

// An engine runs the ready function of the highest sequence number first.
constexpr std::uint64_t runs_last = 0;

class backward_ends : public Node {
 public:
  explicit backward_ends(micro_batch_ptr turns) : Node(runs_last), turns_(std::move(turns)) {}
  std::string name() const override { return "BackwardEnds"; }

 private:
  variable_list apply(variable_list&&) override {
    turns_->end(stage_work::backward);
    return {};
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
    return {gradients[0], {}};
  }

  micro_batch_ptr turns_;
};

at::Tensor rows_of(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

class linear_weights : public Node {
 public:
  linear_weights(edge_list edges, const at::Tensor& input, micro_batch_ptr turns)
      : Node(runs_last, std::move(edges)), input_(input.detach()), turns_(std::move(turns)) {
    turns_->expect_weights();
  }
  std::string name() const override { return "LinearWeights"; }
  void release_variables() override { input_.reset(); }

 private:
  variable_list apply(variable_list&& gradients) override {
    turns_->end(stage_work::backward);
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

at::Tensor with_turns(const at::Tensor& output, const micro_batch_ptr& turns) {
  auto ends = engine::make_node<backward_ends>(turns);
  ends->add_input_metadata(output);
  auto begins = engine::make_node<backward_begins>(
    edge_list{torch::autograd::impl::gradient_edge(output), Edge(std::move(ends), 0)}, turns);
  auto result = output.detach();
  torch::autograd::set_history(result, begins);
  return result;
}

at::Tensor split_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                        const micro_batch_ptr& turns) {
  auto output = at::linear(input.detach(), weight.detach(), bias.detach());
  auto weights = engine::make_node<linear_weights>(torch::autograd::collect_next_edges(weight, bias), input, turns);
  weights->add_input_metadata(output);
  auto function = engine::make_node<linear_input>(
    edge_list{torch::autograd::impl::gradient_edge(input), Edge(std::move(weights), 0)}, input, weight);
  torch::autograd::set_history(output, function);
  return output;
}

}  // namespace troupe::apps::charlm
