// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>

#include "engine/oracle.hpp"
#include "engine/random_program.hpp"

using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(random_programs)

namespace {

using tensors = std::vector<at::Tensor>;

struct outcome {
  tensors gradients;
  tensors retained;
  tensors captures;
  std::vector<std::size_t> order;
  std::vector<std::string> trace;
  std::string error;
  std::map<std::string, std::size_t> features;
};

struct engine_calls {
  std::function<void(const random_program&, bool keep, bool create, const tensors& inputs)> backward;
  std::function<tensors(const random_program&, const tensors& inputs, bool create)> grad;
};

const engine_calls ours{[](const random_program& p, bool keep, bool create, const tensors& inputs) {
                          troupe::backward(p.roots, p.root_gradients, keep, create, inputs);
                        },
                        [](const random_program& p, const tensors& inputs, bool create) {
                          return troupe::grad(p.roots, inputs, p.root_gradients, create, create, true);
                        }};

const engine_calls libtorchs{[](const random_program& p, bool keep, bool create, const tensors& inputs) {
                               torch::autograd::backward(p.roots, p.root_gradients, keep, create, inputs);
                             },
                             [](const random_program& p, const tensors& inputs, bool create) {
                               return torch::autograd::grad(p.roots, inputs, p.root_gradients, create, create, true);
                             }};

tensors some_of(const tensors& all, std::mt19937_64& random) {
  tensors some;
  for (const at::Tensor& each : all)
    if (random() % 3 == 0) some.push_back(each);
  if (some.empty()) some.push_back(all.front());
  return some;
}

// A program whose roots are the gradients of a first pass.
random_program over(const random_program& first, const tensors& gradients) {
  random_program second = first;
  second.roots.clear();
  second.root_gradients.clear();
  for (const at::Tensor& each : gradients) {
    if (each.defined() && each.requires_grad() && !each.is_sparse()) {
      second.roots.push_back(each);
      second.root_gradients.push_back(at::ones_like(each));
    }
  }
  return second;
}

// Changes a saved tensor in place. The function that saved it has to report that.
void change_what_was_saved(random_program& program, std::mt19937_64& random) {
  const at::Tensor& value = program.values[random() % program.values.size()];
  if (value.layout() == at::kStrided && value.is_non_overlapping_and_dense()) {
    value.detach().mul_(2);
    ++program.features["changed after it was saved"];
  }
}

void passes(random_program& program, std::uint64_t kind, std::mt19937_64& random, const engine_calls& engine, outcome& result) {
  const auto is = [&](const char* feature) { ++program.features[feature]; };
  switch (kind) {
    case 0:
    case 1:
      engine.backward(program, false, false, {});
      break;
    case 2:
      is("retained graph");
      engine.backward(program, true, false, {});
      engine.backward(program, true, false, {});
      engine.backward(program, false, false, {});
      break;
    case 3:
      is("second pass over a freed graph");
      engine.backward(program, false, false, {});
      engine.backward(program, false, false, {});
      break;
    case 4:
      is("subset of inputs");
      engine.backward(program, false, false, some_of(program.leaves, random));
      break;
    case 5:
      is("captured values");
      result.captures = engine.grad(program, some_of(program.values, random), false);
      break;
    case 6: {
      is("gradients of gradients");
      result.captures = engine.grad(program, some_of(program.leaves, random), true);
      const random_program second = over(program, result.captures);
      if (!second.roots.empty()) engine.backward(second, false, false, {});
      break;
    }
    default: {
      is("inputs inside the graph");
      engine.backward(program, true, false, some_of(program.values, random));
      engine.backward(program, false, false, some_of(program.leaves, random));
    }
  }
}

void note_shape_of_graph(random_program& program) {
  std::map<torch::autograd::Node*, int> uses;
  std::set<at::ScalarType> types;
  for (torch::autograd::Node* each : functions_of(program.roots)) {
    for (std::size_t i = 0; i < each->num_inputs(); ++i) types.insert(each->input_metadata(i).dtype().toScalarType());
    for (const auto& edge : each->next_edges())
      if (edge.function && ++uses[edge.function.get()] == 2) ++program.features["shared subgraph"];
    program.features["in-place on a view"] += each->name().find("CopySlices") != std::string::npos ? 1 : 0;
    program.features["sparse gradient"] += each->name() == "EmbeddingBackward0" ? 1 : 0;
  }
  program.features["mixed dtypes"] += types.size() > 1 ? 1 : 0;
}

outcome run(std::uint64_t seed, const engine_calls& engine) {
  random_program program(seed);
  std::mt19937_64 random(seed);
  const std::uint64_t kind = random() % 8;
  const auto order = std::make_shared<std::vector<std::size_t>>();
  const auto trace = std::make_shared<std::vector<std::string>>();
  note_shape_of_graph(program);
  if (random() % 2 == 0) record_order(program.roots, order);
  if (random() % 2 == 0) add_hooks(program, seed, kind >= 4, trace);
  if (random() % 25 == 0) change_what_was_saved(program, random);
  outcome result;
  try {
    passes(program, kind, random, engine, result);
  } catch (const std::exception& error) {
    // what() of a libtorch error would look up the name of every function on the stack
    const auto* torch = dynamic_cast<const c10::Error*>(&error);
    const std::string text = torch != nullptr ? torch->what_without_backtrace() : error.what();
    result.error = text.substr(0, text.find('\n'));
  }
  result.gradients = gradients_of(program.leaves);
  for (const at::Tensor& each : program.values)
    if (each.retains_grad()) result.retained.push_back(each.grad());
  result.order = *order;
  result.trace = *trace;
  result.features = program.features;
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(have_libtorchs_bits_order_hook_traces_and_errors) {
  at::set_num_threads(1);
  constexpr std::uint64_t programs = 10'000;
  std::size_t errors = 0;
  std::size_t functions = 0;
  std::size_t hooks = 0;
  std::size_t better = 0;
  std::map<std::string, std::size_t> features;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const outcome expected = run(seed, libtorchs);
    const outcome found = run(seed, ours);
    if (expected.error.rfind("add(sparse, dense)", 0) == 0 && found.error.empty()) {
      ++better;  // the sum exists; libtorch only has the operands in the wrong order
      continue;
    }
    BOOST_TEST_CONTEXT("seed " << seed << ", libtorch says '" << expected.error << "'") {
      BOOST_TEST(found.error == expected.error);
      BOOST_TEST(difference(found.gradients, expected.gradients) == "");
      BOOST_TEST(difference(found.retained, expected.retained) == "");
      BOOST_TEST(difference(found.captures, expected.captures) == "");
      BOOST_TEST(found.order == expected.order, boost::test_tools::per_element());
      BOOST_TEST(found.trace == expected.trace, boost::test_tools::per_element());
    }
    errors += expected.error.empty() ? 0 : 1;
    functions += expected.order.size();
    hooks += expected.trace.size();
    for (const auto& [feature, uses] : expected.features) features[feature] += uses > 0 ? 1 : 0;
  }
  BOOST_TEST_MESSAGE("seeds 1 to " << programs << ": " << functions << " functions and " << hooks << " hooks recorded, "
                                   << errors << " programs that libtorch refuses");
  BOOST_TEST(errors < programs / 4);  // most programs must run without an error, otherwise the test proves nothing
  BOOST_TEST(functions > 5 * programs);
  BOOST_TEST(hooks > 2 * programs);
  BOOST_TEST(better < programs / 100);
  for (const char* feature : {"view",
                              "in-place",
                              "in-place on a view",
                              "broadcast",
                              "mixed dtypes",
                              "shared subgraph",
                              "sparse gradient",
                              "unusual",
                              "custom function",
                              "failing function",
                              "undefined gradient",
                              "expanded gradient",
                              "pre-hook",
                              "post-hook",
                              "tensor hook",
                              "retained gradient",
                              "post-accumulate-grad hook",
                              "replacing hook",
                              "failing hook",
                              "changed after it was saved",
                              "retained graph",
                              "second pass over a freed graph",
                              "subset of inputs",
                              "inputs inside the graph",
                              "captured values",
                              "gradients of gradients"}) {
    BOOST_TEST_MESSAGE(features[feature] << " programs with: " << feature);
    BOOST_TEST(features[feature] > programs / 100, feature << ": only " << features[feature]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
