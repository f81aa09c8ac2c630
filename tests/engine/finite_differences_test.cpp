// SPDX-License-Identifier: BSD-3-Clause
#include <functional>

#include <ATen/ATen.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>

BOOST_AUTO_TEST_SUITE(finite_differences)

namespace {

using function = std::function<at::Tensor(const at::Tensor&)>;

// An oracle without autograd: central differences in double precision.
at::Tensor differences(const function& f, const at::Tensor& at_point) {
  const double h = 1e-5;
  const at::Tensor gradient = at::zeros_like(at_point);
  for (std::int64_t i = 0; i < at_point.numel(); ++i) {
    at::Tensor up = at_point.clone();
    at::Tensor down = at_point.clone();
    up.view(-1)[i] += h;
    down.view(-1)[i] -= h;
    gradient.view(-1)[i] = (f(up) - f(down)) / (2 * h);
  }
  return gradient;
}

void check(const function& f) {
  const at::Tensor x = at::randn({3, 4}, at::kDouble);
  const at::Tensor leaf = x.clone().requires_grad_();
  const at::Tensor found = troupe::grad({f(leaf)}, {leaf})[0];
  BOOST_TEST(at::allclose(found, differences(f, x), 1e-5, 1e-7));
}

}  // namespace

BOOST_AUTO_TEST_CASE(agree_on_a_product_that_uses_its_input_four_times) {
  check([](const at::Tensor& x) { return (at::mm(x, x.t()) * at::mm(x, x.t()).tanh()).sum(); });
}

BOOST_AUTO_TEST_CASE(agree_on_normalisation_and_softmax) {
  const at::Tensor weights = at::randn({3, 4}, at::kDouble);
  check([&](const at::Tensor& x) { return (at::log_softmax(at::layer_norm(x, {4}), 1) * weights).sum(); });
}

BOOST_AUTO_TEST_CASE(agree_on_views_changed_in_place) {
  check([](const at::Tensor& x) {
    at::Tensor y = x * 1;
    y.select(0, 1).mul_(x.select(0, 2));
    y.t().narrow(0, 1, 2).exp_();
    return (y * y).sum();
  });
}

BOOST_AUTO_TEST_CASE(agree_on_gradients_of_gradients) {
  check([](const at::Tensor& x) {
    const at::Tensor leaf = x.requires_grad() ? x : x.detach().requires_grad_();
    const at::Tensor first = troupe::grad({leaf.pow(3).sum() * leaf.sin().sum()}, {leaf}, {}, true, true)[0];
    return first.pow(2).sum();
  });
}

BOOST_AUTO_TEST_SUITE_END()
