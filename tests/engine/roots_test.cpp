// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/roots.hpp>

using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(roots)

namespace {

template <class Run>
void check_refused(Run run, const std::string& part) {
  BOOST_CHECK_EXCEPTION(run(), c10::Error, [&](const c10::Error& refused) {
    BOOST_TEST_INFO(refused.what_without_backtrace());
    return std::string(refused.what_without_backtrace()).find(part) != std::string::npos;
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(have_the_edges_where_their_gradients_start) {
  const auto leaf = at::ones({2}).requires_grad_();
  const auto parts = leaf.split(1);
  const auto edges = root_edges({parts[1], leaf});
  BOOST_REQUIRE(edges.size() == 2u);
  BOOST_TEST(edges[0].function == parts[1].grad_fn());
  BOOST_TEST(edges[0].input_nr == 1u);
  BOOST_TEST(edges[1].function->name() == "torch::autograd::AccumulateGrad");
}

// libtorch makes the function of such a view only when somebody asks for it.
BOOST_AUTO_TEST_CASE(that_are_views_of_what_changed_in_place_have_the_edge_of_the_change) {
  const auto base = at::ones({4}).requires_grad_() * 2;
  const auto view = base.narrow(0, 0, 2);
  const auto* before = view.grad_fn().get();
  base.mul_(3);
  const auto edges = root_edges({view});
  BOOST_TEST(edges[0].function.get() != before);
  BOOST_TEST(edges[0].function == view.grad_fn());
}

BOOST_AUTO_TEST_CASE(that_start_no_pass_are_refused_by_number) {
  const auto leaf = at::ones({2}).requires_grad_();
  check_refused([&] { return root_edges({leaf, at::Tensor()}); }, "root 1 of the backward pass is an undefined tensor");
  check_refused(
    [&] {
      return root_edges({leaf, at::ones({3})});
    },
    "root 1 of the backward pass (shape [3]) does not require grad");
}

BOOST_AUTO_TEST_CASE(of_one_real_element_may_go_without_a_gradient) {
  const auto given = at::full({2}, 5.0);
  const auto gradients = root_gradients({at::ones({2}), at::zeros({1, 1}, at::kDouble)}, {given, at::Tensor()});
  BOOST_REQUIRE(gradients.size() == 2u);
  BOOST_TEST(gradients[0].is_same(given));
  BOOST_TEST(at::equal(gradients[1], at::ones({1, 1}, at::kDouble)));
  BOOST_TEST(at::equal(root_gradients({at::zeros({})}, {})[0], at::ones({})));
}

BOOST_AUTO_TEST_CASE(whose_gradients_do_not_fit_are_refused) {
  const auto complex = at::ones({}, at::kComplexFloat);
  check_refused([] { return root_gradients({at::ones({}), at::ones({})}, {at::ones({})}); }, "2 roots, but 1 gradients");
  check_refused([] { return root_gradients({at::ones({2})}, {}); }, "root 0 has shape [2] and no gradient");
  check_refused([&] { return root_gradients({complex}, {}); }, "only a real root can go without one");
  check_refused([&] { return root_gradients({complex}, {at::ones({})}); }, "either both are complex or none is");
}

BOOST_AUTO_TEST_SUITE_END()
