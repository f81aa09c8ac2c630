// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <random>

#include <ATen/Parallel.h>
#include <boost/test/unit_test.hpp>
#include <torch/csrc/autograd/autograd.h>

#include <troupe/engine/backward.hpp>

#include "engine/oracle.hpp"
#include "engine/random_program.hpp"

using namespace troupe::test;

namespace {

struct outcome {
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> captures;
  std::vector<std::size_t> order;
  std::string error;
};

struct engine_calls {
  std::function<void(const random_program&, bool keep, const std::vector<at::Tensor>& inputs)> backward;
  std::function<std::vector<at::Tensor>(const random_program&, const std::vector<at::Tensor>& inputs, bool create)> grad;
};

const engine_calls ours{
    [](const random_program& p, bool keep, const std::vector<at::Tensor>& inputs) {
      troupe::backward(p.roots, p.root_gradients, keep, false, inputs);
    },
    [](const random_program& p, const std::vector<at::Tensor>& inputs, bool create) {
      return troupe::grad(p.roots, inputs, p.root_gradients, create, create, true);
    }};

const engine_calls libtorchs{
    [](const random_program& p, bool keep, const std::vector<at::Tensor>& inputs) {
      torch::autograd::backward(p.roots, p.root_gradients, keep, false, inputs);
    },
    [](const random_program& p, const std::vector<at::Tensor>& inputs, bool create) {
      return torch::autograd::grad(p.roots, inputs, p.root_gradients, create, create, true);
    }};

std::vector<at::Tensor> some_of(const std::vector<at::Tensor>& tensors, std::mt19937_64& random) {
  std::vector<at::Tensor> some;
  for (const at::Tensor& each : tensors) {
    if (random() % 3 == 0) {
      some.push_back(each);
    }
  }
  if (some.empty()) {
    some.push_back(tensors.front());
  }
  return some;
}

// What a pass does is drawn from the seed too: everything, twice, some inputs, captures, captures of captures.
outcome run(std::uint64_t seed, const engine_calls& engine) {
  const random_program program(seed);
  std::mt19937_64 random(seed);
  const std::uint64_t kind = random() % 6;
  const auto order = std::make_shared<std::vector<std::size_t>>();
  if (random() % 2 == 0) {
    record_order(program.roots, order);
  }
  outcome result;
  try {
    if (kind <= 1) {
      engine.backward(program, false, {});
    } else if (kind == 2) {
      engine.backward(program, true, {});
      engine.backward(program, false, {});
    } else if (kind == 3) {
      engine.backward(program, false, some_of(program.leaves, random));
    } else if (kind == 4) {
      result.captures = engine.grad(program, some_of(program.values, random), false);
    } else {
      result.captures = engine.grad(program, some_of(program.leaves, random), true);
      random_program second = program;
      second.roots.clear();
      second.root_gradients.clear();
      for (const at::Tensor& capture : result.captures) {
        if (capture.defined() && capture.requires_grad()) {
          second.roots.push_back(capture);
          second.root_gradients.push_back(at::ones_like(capture));
        }
      }
      if (!second.roots.empty()) {
        engine.backward(second, false, {});
      }
    }
  } catch (const std::exception& error) {
    result.error = c10::str(error.what()).substr(0, std::string(error.what()).find('\n'));
  }
  result.gradients = gradients_of(program.leaves);
  result.order = *order;
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_programs)

BOOST_AUTO_TEST_CASE(have_libtorchs_bits_order_and_errors) {
  at::set_num_threads(1);
  std::size_t errors = 0;
  std::size_t functions = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const outcome expected = run(seed, libtorchs);
    const outcome found = run(seed, ours);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST(found.error == expected.error);
      BOOST_TEST(difference(found.gradients, expected.gradients) == "");
      BOOST_TEST(difference(found.captures, expected.captures) == "");
      BOOST_TEST(found.order == expected.order, boost::test_tools::per_element());
    }
    errors += expected.error.empty() ? 0 : 1;
    functions += expected.order.size();
  }
  BOOST_TEST_MESSAGE(functions << " functions recorded, " << errors << " programs that libtorch refuses");
  BOOST_TEST(errors < 400u);  // most programs have to be sound, or nothing is tested
  BOOST_TEST(functions > 10000u);
}

BOOST_AUTO_TEST_SUITE_END()
