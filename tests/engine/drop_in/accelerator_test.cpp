// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include "engine/drop_in/both_engines.hpp"
#include "engine/oracle.hpp"
#include "support/simulated_accelerator.hpp"

using namespace troupe::test;

namespace {

struct with_accelerator {
  with_accelerator() { simulated::install(); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(drop_in_accelerator, with_accelerator)

BOOST_AUTO_TEST_CASE(a_pass_with_functions_on_an_accelerator_is_left_to_libtorch) {
  const installed engine;
  bool inside = true;
  const auto x = at::ones({4}).requires_grad_();
  const auto y = x * 2;
  y.register_hook([&](const at::Tensor&) { inside = inside_troupe(); });
  torch::autograd::backward({(y.to(simulated::device()) * 3).sum().cpu()});
  BOOST_TEST(!inside);
  BOOST_TEST(at::equal(x.grad(), at::full({4}, 6.0F)));
}

BOOST_AUTO_TEST_CASE(a_pass_on_the_cpu_is_troupes_also_where_there_is_an_accelerator) {
  const installed engine;
  bool inside = false;
  const auto x = at::ones({4}).requires_grad_();
  x.register_hook([&](const at::Tensor&) { inside = inside_troupe(); });
  torch::autograd::backward({(x * 2).sum()});
  BOOST_TEST(inside);
}

BOOST_AUTO_TEST_SUITE_END()
