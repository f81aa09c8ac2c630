// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <random>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"
#include "engine/random_program.hpp"

using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(drop_in_random_programs)

namespace {

/// The results of a program's pass: gradients or captures, the order of its functions, its error, and what its hooks saw.
std::vector<std::string> outcome_of(std::uint64_t seed, bool with_hooks) {
  random_program program(seed);
  const auto order = std::make_shared<std::vector<std::size_t>>();
  const auto hooks = std::make_shared<std::vector<std::string>>();
  record_order(program.roots, order);
  std::vector<at::Tensor> captures;
  std::mt19937_64 random(seed);
  std::vector<std::string> outcome;
  const std::uint64_t kind = random() % 3;
  if (with_hooks) add_hooks(program, seed, kind != 0, hooks);
  try {
    switch (kind) {
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
  for (const at::Tensor& each : gradients_of(program.leaves))
    outcome.push_back(each.defined() && each.is_sparse() ? text_of(each.to_dense()) : text_of(each));
  for (const at::Tensor& each : captures)
    outcome.push_back(each.defined() && each.is_sparse() ? text_of(each.to_dense()) : text_of(each));
  for (const std::size_t each : *order) outcome.push_back(std::to_string(each));
  outcome.insert(outcome.end(), hooks->begin(), hooks->end());
  return outcome;
}

}  // namespace

BOOST_AUTO_TEST_CASE(have_libtorchs_bits_order_hook_traces_and_errors) {
  at::set_num_threads(1);
  const auto is_of_hook = [](const std::string& line) { return line.find("hook ") != std::string::npos; };
  std::size_t functions = 0;
  std::ptrdiff_t hooks = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const bool with_hooks = seed % 2 == 0;
    const auto found = on_both([&] { return outcome_of(seed, with_hooks); });
    hooks += with_hooks ? std::count_if(found.libtorch.begin(), found.libtorch.end(), is_of_hook) : 0;
    if (found.libtorch.front().rfind("add(sparse, dense)", 0) == 0 && found.troupe.front() != found.libtorch.front())
      continue;  // troupe adds these gradients; see docs/engine.md
    functions += found.libtorch.size();
    BOOST_TEST_CONTEXT("seed " << seed) { BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element()); }
  }
  BOOST_TEST(functions > 4000u);
  BOOST_TEST(hooks > 500);
}

BOOST_AUTO_TEST_SUITE_END()
