// SPDX-License-Identifier: BSD-3-Clause
#include <sstream>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>

#include "engine/both_ways.hpp"
#include "engine/drop_in/both_engines.hpp"

using namespace troupe::test;
using torch::autograd::variable_list;
using trace = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(validation)

namespace {

/// A scalar whose function returns `outputs` as the gradients of `leaves`.
at::Tensor returning(const variable_list& leaves, variable_list outputs) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& leaf : leaves) edges.push_back(torch::autograd::impl::gradient_edge(leaf));
  at::Tensor root = at::zeros({});
  auto function = make_function(
    "returning", [outputs = std::move(outputs)](auto&&) { return outputs; }, root, std::move(edges));
  torch::autograd::impl::set_gradient_edge(root, {std::move(function), 0});
  return root;
}

std::string describe(const at::Tensor& gradient) {
  if (!gradient.defined()) return "undefined";
  std::ostringstream text;
  text << gradient.options() << ' ' << gradient.sizes();
  if (!gradient.is_meta())
    text << ' ' << text_of(gradient.is_sparse() || gradient.is_sparse_csr() ? gradient.to_dense() : gradient);
  return text.str();
}

/// The result of sending `gradient` to a leaf like `like`: the leaf's gradient, or the error without the text about where the
/// check is.
trace arrival(const way& run_on, const at::Tensor& like, const at::Tensor& gradient) {
  const auto leaf = like.detach().clone().requires_grad_();
  std::string error = error_of([&] { run_on.backward({returning({leaf}, {gradient})}); });
  return {error.substr(0, error.find('\n')), describe(leaf.grad())};
}

void same(const at::Tensor& like, const at::Tensor& gradient, const std::string& error_part) {
  const auto run = [&](const way& run_on) { return arrival(run_on, like, gradient); };
  const auto found = both_ways(run);
  BOOST_TEST_CONTEXT(like.options() << like.sizes() << " from " << (gradient.defined() ? gradient.toString() : "nothing")) {
    BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element());
    BOOST_TEST_INFO(found.troupe[0]);
    BOOST_TEST((found.troupe[0].find(error_part) != std::string::npos));
  }
}

at::Tensor sparse(at::IntArrayRef shape) { return at::ones(shape).to_sparse(); }

}  // namespace

BOOST_AUTO_TEST_CASE(of_shapes_is_libtorchs) {
  const auto two_by_three = at::zeros({2, 3});
  same(two_by_three, at::rand({2, 3}), "none");
  same(two_by_three, at::rand({5, 2, 3}), "none");
  same(two_by_three, at::rand({4, 5, 2, 3}), "none");
  same(at::zeros({2, 1}), at::rand({2, 3}), "none");
  same(at::zeros({}), at::rand({2, 3}), "none");
  same(at::zeros({1}), at::rand({}), "got [] but expected shape compatible with [1]");
  same(at::zeros({0}), at::rand({0}), "none");
  same(two_by_three, at::rand({2, 1}),
       "Function returning returned an invalid gradient at index 0 - got [2, 1] but expected shape");
  same(two_by_three, at::rand({3, 2}), "got [3, 2] but expected shape compatible with [2, 3]");
  same(two_by_three, at::rand({3}), "got [3] but expected shape compatible with [2, 3]");
}

BOOST_AUTO_TEST_CASE(of_dtypes_is_libtorchs) {
  for (const auto wanted : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16})
    for (const auto given : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16})
      same(at::zeros({3}, wanted), at::rand({3}).to(given), "none");
  same(at::zeros({3}), at::ones({3}, at::kLong), "");
  same(at::zeros({3}), at::ones({3}, at::kBool), "");
}

BOOST_AUTO_TEST_CASE(of_complex_gradients_is_libtorchs) {
  same(at::zeros({3}, at::kComplexFloat), at::rand({3}), "none");
  same(at::zeros({3}, at::kComplexFloat), at::rand({3}, at::kComplexDouble), "none");
  same(at::zeros({3}), at::rand({3}, at::kComplexFloat), "");
  same(at::zeros({3}, at::kDouble), at::rand({3}, at::kComplexFloat), "");
}

BOOST_AUTO_TEST_CASE(of_layouts_is_libtorchs) {
  same(at::zeros({2, 3}), sparse({2, 3}), "none");
  same(sparse({2, 3}), at::rand({2, 3}), "none");
  same(sparse({2, 3}), sparse({2, 3}), "none");
  same(at::zeros({2, 3}), at::ones({2, 3}).to_sparse_csr(), "");
  same(at::zeros({2, 3}), sparse({3, 2}), "");
}

BOOST_AUTO_TEST_CASE(of_devices_is_libtorchs) {
  const auto meta = at::TensorOptions(at::kMeta);
  same(at::zeros({3}), at::empty({3}, meta), "invalid gradient at index 0 - expected device cpu but got meta");
  same(at::empty({3}, meta), at::rand({3}), "invalid gradient at index 0 - expected device meta but got cpu");
  same(at::empty({}, meta), at::rand({}), "none");  // without dimensions: moved
}

BOOST_AUTO_TEST_CASE(of_undefined_gradients_and_of_their_number_is_libtorchs) {
  same(at::zeros({3}), at::Tensor(), "none");
  for (const std::size_t count : {0, 1, 3}) {
    const auto run = [&](const way& run_on) {
      const auto a = at::zeros({2}).requires_grad_();
      const auto b = at::zeros({2}).requires_grad_();
      return trace{error_of([&] { run_on.backward({returning({a, b}, variable_list(count, at::ones({2})))}); })};
    };
    TROUPE_TEST_BOTH_WAYS(run, 1);
    BOOST_TEST(run(way(true))[0] ==
               "Function returning returned an invalid number of gradients - expected 2, but got " + std::to_string(count));
  }
  const auto run = [&](const way& run_on) {
    const auto a = at::zeros({2}).requires_grad_();
    const auto b = at::zeros({2}).requires_grad_();
    run_on.backward({returning({a, b}, {at::Tensor(), at::ones({2})})});
    return trace{describe(a.grad()), describe(b.grad())};
  };
  TROUPE_TEST_BOTH_WAYS(run, 2);
}

BOOST_AUTO_TEST_CASE(of_the_gradients_of_roots_is_libtorchs) {
  const auto x = at::zeros({2, 3}, at::kDouble).requires_grad_();
  for (const at::Tensor& gradient :
       {at::ones({2, 3}), at::ones({4, 2, 3}, at::kDouble), at::ones({3, 2}), at::ones({}, at::kDouble)}) {
    const auto run = [&](const way& run_on) {
      x.mutable_grad() = at::Tensor();
      const std::string error = error_of([&] { run_on.backward({x * 2}, {gradient}); });
      const auto reason = error.find("invalid gradient");  // troupe's text says more about the place
      return trace{reason == std::string::npos ? error : error.substr(reason), describe(x.grad())};
    };
    TROUPE_TEST_BOTH_WAYS(run, 2);
  }
}

BOOST_AUTO_TEST_CASE(of_a_leaf_whose_gradient_has_a_dtype_of_its_own_is_libtorchs) {
  for (const auto wanted : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const auto given : {at::kFloat, at::kDouble, at::kBFloat16}) {
      const auto gradient = at::linspace(0.1, 1, 3).to(given);
      const auto run = [&](const way& run_on) {
        const auto x = at::zeros({3}).requires_grad_();
        x.set_grad_dtype(wanted);
        return trace{error_of([&] { run_on.backward({returning({x}, {gradient})}); }), describe(x.grad())};
      };
      TROUPE_TEST_BOTH_WAYS(run, 2);
      BOOST_TEST(run(way(true))[1] == describe(gradient.to(wanted)));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
