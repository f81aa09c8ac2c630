// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>
#include <torch/torch.h>

#include <troupe/engine/backward.hpp>

BOOST_AUTO_TEST_SUITE(backward)

BOOST_AUTO_TEST_CASE(a_small_expression_has_libtorchs_gradients) {
  const auto x = torch::randn({3, 4}, torch::requires_grad());
  const auto w = torch::randn({4, 2}, torch::requires_grad());
  const auto loss = (torch::mm(x, w).tanh() * 3).sum() + x.pow(2).sum();
  troupe::backward({loss}, {}, true);
  const auto gx = x.grad().clone();
  const auto gw = w.grad().clone();
  x.mutable_grad() = at::Tensor();
  w.mutable_grad() = at::Tensor();
  loss.backward();
  BOOST_TEST(torch::equal(gx, x.grad()));
  BOOST_TEST(torch::equal(gw, w.grad()));
}

BOOST_AUTO_TEST_SUITE_END()
