// SPDX-License-Identifier: BSD-3-Clause
#include <random>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"
#include "engine/random_program.hpp"

using namespace troupe::test;

namespace {

/// What a program's pass gives: gradients or captures, the order of its functions, its error.
std::vector<std::string> outcome_of(std::uint64_t seed) {
  const random_program program(seed);
  const auto order = std::make_shared<std::vector<std::size_t>>();
  record_order(program.roots, order);
  std::vector<at::Tensor> captures;
  std::mt19937_64 random(seed);
  std::vector<std::string> outcome;
  try {
    switch (random() % 3) {
      case 0:
        torch::autograd::backward(program.roots, program.root_gradients);
        break;
      case 1:
        torch::autograd::backward(program.roots, program.root_gradients, false, false, {program.leaves.front()});
        break;
      case 2:
        captures =
          torch::autograd::grad(program.roots, {program.values[random() % program.values.size()], program.leaves.back()},
                                program.root_gradients, true, true, true);
        break;
    }
  } catch (const std::exception& error) {
    outcome.push_back(std::string(error.what()).substr(0, std::string(error.what()).find('\n')));
  }
  for (const at::Tensor& each : gradients_of(program.leaves)) {
    outcome.push_back(each.defined() && each.is_sparse() ? text_of(each.to_dense()) : text_of(each));
  }
  for (const at::Tensor& each : captures) {
    outcome.push_back(each.defined() && each.is_sparse() ? text_of(each.to_dense()) : text_of(each));
  }
  for (const std::size_t each : *order) {
    outcome.push_back(std::to_string(each));
  }
  return outcome;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(drop_in_random_programs)

BOOST_AUTO_TEST_CASE(have_libtorchs_bits_order_and_errors) {
  at::set_num_threads(1);
  std::size_t functions = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const auto found = on_both([&] { return outcome_of(seed); });
    if (found.libtorch.front().rfind("add(sparse, dense)", 0) == 0 && found.troupe.front() != found.libtorch.front()) {
      continue;  // troupe adds them up: see docs/engine.md
    }
    functions += found.libtorch.size();
    BOOST_TEST_CONTEXT("seed " << seed) { BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element()); }
  }
  BOOST_TEST(functions > 4000u);
}

BOOST_AUTO_TEST_SUITE_END()
