// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <unordered_set>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/dynamo/compiled_autograd.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/drop_in/substitute.hpp>

#include "engine/drop_in/both_engines.hpp"

using namespace troupe::test;
using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

using trace = std::vector<std::string>;

trace compiled;

/// A stand-in for Python's compiled autograd, which replaces passes: it asks each function of the graph for its description
/// and refuses a graph with a function that gives none. Every gradient that it returns is a tensor of twos.
variable_list compile(const troupe::engine::node_pointer& root, const GraphTask&, bool accumulates, const edge_list& inputs) {
  torch::dynamo::autograd::AutogradCompilerCall call(torch::dynamo::autograd::SizeInput::DYNAMIC);
  std::vector<troupe::engine::node_pointer> functions{root};
  std::unordered_set<Node*> seen;
  std::string names;
  while (!functions.empty()) {
    const auto function = functions.back();
    functions.pop_back();
    if (!seen.insert(function.get()).second) continue;
    torch::dynamo::autograd::CompiledNodeArgs arguments(call, call.node_calls.lookup(function));
    function->compiled_args(arguments);
    names += function->name() + ' ';
    for (const auto& edge : function->next_edges())
      if (edge.is_valid()) functions.push_back(edge.function);
  }
  compiled.push_back(names + (accumulates ? "to accumulate" : "to return"));
  variable_list gradients;
  for (std::size_t i = 0; i < inputs.size(); ++i) gradients.push_back(at::full({2}, 2.0));
  return gradients;
}

struct with_compiled_autograd {
  with_compiled_autograd() {
    compiled.clear();
    Engine::set_compiled_autograd(compile);
  }
  ~with_compiled_autograd() { Engine::set_compiled_autograd(nullptr); }
};

at::Tensor leaf() { return at::ones({2}).requires_grad_(); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(drop_in_compiled_autograd, with_compiled_autograd)

// SU-3
BOOST_AUTO_TEST_CASE(takes_apart_the_passes_that_it_takes_apart_on_libtorchs_engine) {
  const auto run = [] {
    compiled.clear();
    const auto x = leaf();
    const auto y = (x * 2).exp();
    torch::autograd::backward({y.sum()}, {}, true);
    trace found{text_of(torch::autograd::grad({y.sum(), x.sum()}, {x}, {}, true)[0])};
    torch::autograd::backward({y.sum()}, {}, true, false, {x});
    found.insert(found.end(), compiled.begin(), compiled.end());
    return found;
  };
  const auto before = troupe::engine::passes_so_far();
  const auto found = on_both(run);
  const auto after = troupe::engine::passes_so_far();
  BOOST_TEST(found.libtorch.size() == 4u);
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
  BOOST_TEST(after.troupe == before.troupe);
  BOOST_TEST(after.libtorch == before.libtorch + 3);
}

// SU-3
BOOST_AUTO_TEST_CASE(refuses_what_it_refuses_on_libtorchs_engine) {
  const auto run = [] {
    const auto x = leaf();
    const auto unknown = through(
      x, [](at::Tensor gradient) { return gradient; }, "unknown");
    return trace{error_of([&] { torch::autograd::grad({unknown.sum()}, {x}, {}, true, true); }),
                 error_of([&] { torch::autograd::backward({unknown.sum()}); })};
  };
  const auto found = on_both(run);
  for (const std::string& each : found.libtorch) BOOST_TEST(each == "compiled_args not implemented: unknown");
  BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
}

// LT-3
BOOST_AUTO_TEST_CASE(leaves_alone_the_passes_of_troupes_own_functions) {
  const auto x = leaf();
  const auto z = at::full({2}, 3.0).requires_grad_();
  BOOST_TEST(at::equal(troupe::grad({(x * z).sum()}, {x})[0], z));
  troupe::backward({(x * z).sum()});
  BOOST_TEST(at::equal(x.grad(), z));
  BOOST_TEST(compiled.empty());
}

BOOST_AUTO_TEST_SUITE_END()
