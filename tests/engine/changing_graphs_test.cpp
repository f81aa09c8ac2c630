// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/torch_compat.hpp>

#include "engine/oracle.hpp"

using namespace troupe::test;
using torch::autograd::Node;
using torch::autograd::variable_list;

/// A pass reuses the memory of the pass before. So each pass of this test runs over a graph that differs in one thing from the
/// graph of the pass before.
BOOST_AUTO_TEST_SUITE(changing_graphs)

namespace {

using tensors = std::vector<at::Tensor>;
using trace = std::vector<std::string>;

constexpr std::size_t function_count = 14;
constexpr std::size_t leaf_count = 5;

/// Each output is another sum of products of the inputs.
struct mixer final : Node {
  mixer(std::size_t number, std::uint64_t sequence, std::shared_ptr<trace> ran)
      : Node(sequence), number(number), ran(std::move(ran)) {}
  std::string name() const override { return "mixer " + std::to_string(number); }
  variable_list apply(variable_list&& inputs) override {
    ran->push_back(name());
    variable_list outputs(num_outputs());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      for (std::size_t j = 0; j < inputs.size(); ++j)
        if (inputs[j].defined()) {
          const at::Tensor part = inputs[j] * (0.1 * static_cast<double>(i + 3 * j + number) - 1);
          outputs[i] = outputs[i].defined() ? outputs[i] + part : part;
        }
    return outputs;
  }
  std::size_t number;
  std::shared_ptr<trace> ran;
};

struct scaling_hook final : torch::autograd::FunctionPreHook {
  scaling_hook(std::size_t number, std::shared_ptr<trace> ran) : number(number), ran(std::move(ran)) {}
  variable_list operator()(const variable_list& gradients) override {
    ran->push_back("hook " + std::to_string(number));
    variable_list scaled = gradients;
    for (at::Tensor& each : scaled)
      if (each.defined()) each = each * 1.7;
    return scaled;
  }
  std::size_t number;
  std::shared_ptr<trace> ran;
};

struct edge {
  std::size_t to;  // a function, or function_count plus the number of a leaf
  std::uint32_t input;
};

/// What a pass runs over. Function 0 is the root; each function leads to later functions and to leaves.
struct shape {
  struct function {
    std::vector<edge> edges;
    std::uint32_t inputs = 1;
    std::uint64_t sequence = 0;
    bool hooked = false;
    bool held = false;  // the program keeps a pointer to the function
  };
  std::array<function, function_count> functions;
  std::vector<std::size_t> inputs;    // leaves; if empty, all
  std::vector<std::size_t> captured;  // functions whose gradients grad() returns
};

class author {
 public:
  explicit author(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  edge drawn(const shape& of, std::size_t from) {
    const std::size_t later = function_count + leaf_count - from - 1;
    const std::size_t to =
      from + 1 + below(below(4) == 0 ? later : std::min<std::size_t>(later, 3));  // mostly to the next ones
    return {to, to < function_count ? static_cast<std::uint32_t>(below(of.functions[to].inputs)) : 0};
  }

  shape first() {
    shape made;
    for (auto& each : made.functions) each.inputs = 1 + static_cast<std::uint32_t>(below(3));
    for (std::size_t i = 0; i < function_count; ++i) {
      made.functions[i].sequence = 100 - i;
      for (std::size_t n = 1 + below(3); n > 0; --n) made.functions[i].edges.push_back(drawn(made, i));
    }
    return made;
  }

  /// Changes one thing and returns its name.
  std::string change(shape& of) {
    const std::size_t at = below(function_count);
    shape::function& function = of.functions[at];
    const std::size_t which = below(function.edges.size());
    switch (below(10)) {
      case 0:
        function.edges[which] = drawn(of, at);
        return "an edge";
      case 1:
        std::swap(function.edges[which], function.edges[below(function.edges.size())]);
        return "the order of edges";
      case 2:
        if (function.edges.size() > 1) function.edges.erase(function.edges.begin() + static_cast<std::ptrdiff_t>(which));
        return "one edge less";
      case 3:
        if (function.edges.size() < 4) function.edges.push_back(drawn(of, at));
        return "one edge more";
      case 4:
        function.hooked = !function.hooked;
        return "a hook";
      case 5:
        std::swap(function.sequence, of.functions[below(function_count)].sequence);
        return "sequence numbers";
      case 6:
        function.sequence = of.functions[below(function_count)].sequence;
        return "equal sequence numbers";
      case 7:
        of.inputs.clear();
        for (std::size_t i = below(3); i > 0; --i) of.inputs.push_back(below(leaf_count));
        return "inputs";
      case 8:
        of.captured.clear();
        for (std::size_t i = below(3); i > 0; --i) of.captured.push_back(below(function_count));
        return "captures";
      default:
        function.held = !function.held;
        return "a pointer to a function";
    }
  }

 private:
  std::mt19937_64 random_;
};

struct engine_calls {
  std::function<void(const tensors&, const tensors&, const tensors&)> backward;  // roots, gradients, inputs
  std::function<tensors(const tensors&, const tensors&, const tensors&)> grad;   // roots, inputs, gradients
};

const engine_calls ours{
  [](const auto& roots, const auto& gradients, const auto& inputs) { troupe::backward(roots, gradients, true, false, inputs); },
  [](const auto& roots, const auto& inputs, const auto& gradients) {
    return troupe::grad(roots, inputs, gradients, true, false, true);
  }};
const engine_calls libtorchs{[](const auto& roots, const auto& gradients, const auto& inputs) {
                               torch::autograd::backward(roots, gradients, true, false, inputs);
                             },
                             [](const auto& roots, const auto& inputs, const auto& gradients) {
                               return torch::autograd::grad(roots, inputs, gradients, true, false, true);
                             }};

/// The functions of a shape. They live as long as the object; a new object has new functions, often at the same addresses.
class graph {
 public:
  graph(const shape& of, const tensors& leaves) : shape_(of) {
    for (std::size_t i = function_count; i-- > 0;) {
      const shape::function& function = shape_.functions[i];
      made_[i] = troupe::engine::make_node<mixer>(i, function.sequence, ran_);
      for (std::uint32_t n = 0; n < function.inputs; ++n) made_[i]->add_input_metadata(leaves.front().detach());
      if (i + 1 < function_count) {  // the topological number lets the function lead to any later function
        made_[i]->add_next_edge({made_[i + 1], 0});
        made_[i]->next_edges().pop_back();
      }
      for (const edge& each : function.edges) made_[i]->add_next_edge(target(each, leaves));
      if (function.hooked) made_[i]->add_tensor_pre_hook(std::make_unique<scaling_hook>(i, ran_));
    }
    root_ = tensor_at(0);
    for (const std::size_t each : shape_.captured) captured_.push_back(tensor_at(each));
    for (std::size_t i = 0; i < function_count; ++i) {
      live_[i] = made_[i].get();
      if (!shape_.functions[i].held) made_[i] = nullptr;
    }
    forget_freed();
  }

  /// Turns an edge of a live function, between two passes. Functions that nothing leads to any more are freed.
  void turn(const shape& now, std::size_t at, std::size_t which, const tensors& leaves) {
    const edge& to = now.functions[at].edges[which];
    if (live_[at] == nullptr || (to.to < function_count && live_[to.to] == nullptr)) return;
    live_[at]->next_edges().at(which) = target(to, leaves);
    forget_freed();
  }

  /// One pass. The result has the order of functions and hooks, and the gradients in `gradients`.
  trace run(const engine_calls& engine, const tensors& leaves, tensors& gradients) {
    clear_gradients(leaves);
    ran_->clear();
    tensors inputs;
    for (const std::size_t each : shape_.inputs) inputs.push_back(leaves[each]);
    const at::Tensor gradient = at::linspace(-1, 2, 3);
    gradients.clear();
    if (!captured_.empty()) {
      inputs.insert(inputs.end(), captured_.begin(), captured_.end());
      gradients = engine.grad({root_}, inputs, {gradient});
    } else {
      engine.backward({root_}, {gradient}, inputs);
    }
    for (const at::Tensor& each : gradients_of(leaves)) gradients.push_back(each);
    return *ran_;
  }

 private:
  void forget_freed() {
    std::array<bool, function_count> found{};
    std::vector<const Node*> open{live_[0]};
    for (std::size_t i = 0; i < function_count; ++i)
      if (made_[i]) open.push_back(live_[i]);
    while (!open.empty()) {
      const Node* const each = open.back();
      open.pop_back();
      const auto at = static_cast<std::size_t>(std::find(live_.begin(), live_.end(), each) - live_.begin());
      if (at == function_count || std::exchange(found.at(at), true)) continue;
      for (const auto& next : each->next_edges()) open.push_back(next.function.get());
    }
    for (std::size_t i = 0; i < function_count; ++i)
      if (!found[i]) live_[i] = nullptr;
  }

  torch::autograd::Edge target(const edge& to, const tensors& leaves) const {
    if (to.to >= function_count) return {torch::autograd::impl::grad_accumulator(leaves[to.to - function_count]), 0};
    if (made_[to.to]) return {made_[to.to], to.input};
    return {live_[to.to]->getptr(), to.input};
  }

  at::Tensor tensor_at(std::size_t function) const {
    at::Tensor made = at::ones({3});
    torch::autograd::impl::set_gradient_edge(made, {made_[function], 0});
    return made;
  }

  shape shape_;
  std::shared_ptr<trace> ran_ = std::make_shared<trace>();
  std::array<troupe::engine::node_pointer, function_count> made_;
  std::array<Node*, function_count> live_{};
  at::Tensor root_;
  tensors captured_;
};

tensors make_leaves() {
  tensors all;
  for (std::size_t i = 0; i < leaf_count; ++i)
    all.push_back(at::full({3}, static_cast<double>(i), at::kFloat).requires_grad_());
  return all;
}

void expect_same(graph& a, graph& b, const tensors& leaves, std::size_t& functions) {
  tensors expected;
  tensors found;
  const trace theirs = a.run(libtorchs, leaves, expected);
  const trace mine = b.run(ours, leaves, found);
  BOOST_TEST(difference(found, expected) == "");
  BOOST_TEST(mine == theirs, boost::test_tools::per_element());
  functions += theirs.size();
}

}  // namespace

BOOST_AUTO_TEST_CASE(that_are_made_anew_with_one_difference_have_libtorchs_bits_and_order) {
  constexpr std::uint64_t programs = 300;
  constexpr int passes = 25;
  std::size_t functions = 0;
  std::map<std::string, std::size_t> changes;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    author by(seed);
    shape now = by.first();
    const tensors leaves = make_leaves();
    std::string changed = "nothing";
    for (int pass = 0; pass < passes; ++pass) {
      BOOST_TEST_CONTEXT("seed " << seed << ", pass " << pass << ", changed: " << changed) {
        graph a(now, leaves);
        graph b(now, leaves);
        expect_same(a, b, leaves, functions);
      }
      if (by.below(4) > 0) ++changes[changed = by.change(now)];
    }
  }
  BOOST_TEST(functions > 5 * programs * passes);
  BOOST_TEST(changes.size() == 10u);
}

BOOST_AUTO_TEST_CASE(whose_edges_turn_between_two_passes_have_libtorchs_bits_and_order) {
  constexpr std::uint64_t programs = 300;
  constexpr int passes = 25;
  std::size_t functions = 0;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    author by(seed);
    shape now = by.first();
    for (int i = 0; i < 10; ++i) by.change(now);
    const tensors leaves = make_leaves();
    graph a(now, leaves);
    graph b(now, leaves);
    for (int pass = 0; pass < passes; ++pass) {
      BOOST_TEST_CONTEXT("seed " << seed << ", pass " << pass) { expect_same(a, b, leaves, functions); }
      const std::size_t at = by.below(function_count);
      const std::size_t which = by.below(now.functions[at].edges.size());
      now.functions[at].edges[which] = by.drawn(now, at);
      a.turn(now, at, which, leaves);
      b.turn(now, at, which, leaves);
    }
  }
  BOOST_TEST(functions > 3 * programs * passes);
}

BOOST_AUTO_TEST_SUITE_END()
