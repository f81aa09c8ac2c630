// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <vector>

#include <troupe/engine/gradient_table.hpp>

#include "engine/oracle.hpp"

using namespace troupe::engine;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(gradient_tables)

namespace {

// The gradient that libtorch's accumulation function leaves in .grad of a similar leaf after the same gradients.
at::Tensor libtorchs(const at::Tensor& leaf, const std::vector<at::Tensor>& gradients) {
  const at::Tensor twin = leaf.detach().requires_grad_();
  torch::autograd::AccumulateGrad accumulate(twin);
  const c10::AutoGradMode off(false);
  for (const at::Tensor& gradient : gradients) accumulate({gradient.clone()});
  return twin.grad();
}

at::Tensor ours(const at::Tensor& leaf, const std::vector<at::Tensor>& gradients) {
  gradient_table table;
  const c10::AutoGradMode off(false);
  for (const at::Tensor& gradient : gradients) table.accumulate(leaf, gradient.clone());
  return table.find(leaf);
}

at::Tensor sparse(std::int64_t row) {
  return at::sparse_coo_tensor(at::tensor({row, row}, at::kLong).unsqueeze(0), at::randn({2, 3}), {4, 3});
}

}  // namespace

BOOST_AUTO_TEST_CASE(sums_have_the_bits_and_strides_of_libtorch) {
  const auto plain = at::randn({4, 3}).requires_grad_();
  const auto turned = at::randn({3, 4}).t().requires_grad_();
  const auto view = at::randn({4, 6}).narrow(1, 0, 3).requires_grad_();
  const auto column = [] { return at::randn({3, 4}).t(); };
  for (const at::Tensor& leaf : {plain, turned, view})
    for (const auto& gradients : std::vector<std::vector<at::Tensor>>{{at::randn({4, 3})},
                                                                      {column()},
                                                                      {at::randn({4, 3}), column(), at::randn({4, 3})},
                                                                      {at::randn({1, 1}).expand({4, 3})}})
      BOOST_TEST(difference(ours(leaf, gradients), libtorchs(leaf, gradients)) == "");
}

BOOST_AUTO_TEST_CASE(sparse_and_dense_gradients_meet_as_in_libtorch) {
  const auto leaf = at::randn({4, 3}).requires_grad_();
  for (const auto& gradients : std::vector<std::vector<at::Tensor>>{
         {sparse(1)}, {sparse(1), sparse(2)}, {sparse(1), at::randn({4, 3})}, {at::randn({4, 3}), sparse(3)}})
    BOOST_TEST(difference(ours(leaf, gradients), libtorchs(leaf, gradients)) == "");
}

// TB-2
BOOST_AUTO_TEST_CASE(a_gradient_is_taken_only_from_its_sole_owner) {
  const auto leaf = at::randn({4, 3}).requires_grad_();
  const c10::AutoGradMode off(false);
  gradient_table table;
  at::Tensor mine = at::randn({4, 3});
  const void* memory = mine.data_ptr();
  table.accumulate(leaf, std::move(mine));
  BOOST_TEST(table.find(leaf).data_ptr() == memory);

  table.clear();
  const at::Tensor kept = at::randn({4, 3});
  table.accumulate(leaf, kept);
  BOOST_TEST(table.find(leaf).data_ptr() != kept.data_ptr());

  table.clear();
  const at::Tensor whole = at::randn({8, 3});
  table.accumulate(leaf, whole.narrow(0, 0, 4));
  BOOST_TEST(!table.find(leaf).is_alias_of(whole));
  table.accumulate(leaf, at::ones({4, 3}));
  BOOST_TEST(!at::equal(table.find(leaf), whole.narrow(0, 0, 4)));
}

// TB-3
BOOST_AUTO_TEST_CASE(a_gradient_that_was_handed_out_stays_as_it_is_while_the_sum_grows) {
  const auto leaf = at::randn({4, 3}).requires_grad_();
  const c10::AutoGradMode off(false);
  const auto rows = [] { return at::tensor({1, 3}, at::kLong).unsqueeze(0); };
  const auto coalesced = [&] { return at::sparse_coo_tensor(rows(), at::randn({2, 3}), {4, 3}).coalesce(); };
  const auto dense = [] { return at::randn({4, 3}); };
  const auto as_it_is = [](const at::Tensor& x) { return x; };
  const auto view = [](const at::Tensor& x) { return x.view({12}); };
  const auto values = [](const at::Tensor& x) { return x._values(); };
  struct way {
    std::function<at::Tensor()> first;
    std::function<at::Tensor()> second;
    std::function<at::Tensor(const at::Tensor&)> kept;
  };
  const std::vector<way> ways{{dense, dense, as_it_is},
                              {dense, dense, view},
                              {dense, [] { return sparse(1); }, as_it_is},
                              {[] { return sparse(1); }, [] { return sparse(2); }, as_it_is},
                              {coalesced, coalesced, as_it_is},
                              {coalesced, coalesced, values},
                              {[] { return sparse(1); }, dense, as_it_is}};
  for (const auto& [first, second, kept] : ways) {
    const std::vector<at::Tensor> gradients{first(), second(), second()};
    gradient_table table;
    std::vector<at::Tensor> held;
    std::vector<at::Tensor> copies;
    for (const auto& gradient : gradients) {
      table.accumulate(leaf, gradient.clone());
      held.push_back(kept(table.find(leaf)));
      copies.push_back(held.back().clone());
    }
    for (std::size_t i = 0; i < held.size(); ++i) BOOST_TEST(difference(held[i], copies[i]) == "");
    BOOST_TEST(difference(table.find(leaf), libtorchs(leaf, gradients)) == "");
  }
}

// TB-3
BOOST_AUTO_TEST_CASE(a_copy_of_a_table_keeps_its_gradients_and_one_that_nobody_holds_is_added_to_in_place) {
  const auto leaf = at::randn({4, 3}).requires_grad_();
  const c10::AutoGradMode off(false);
  auto first = std::make_unique<gradient_table>();
  first->accumulate(leaf, at::ones({4, 3}));
  const void* memory = first->find(leaf).data_ptr();
  gradient_table sum(*first);
  sum.accumulate(leaf, at::ones({4, 3}));
  BOOST_TEST(at::equal(first->find(leaf), at::ones({4, 3})));
  BOOST_TEST(at::equal(sum.find(leaf), at::full({4, 3}, 2.0)));

  gradient_table next(*first);
  first = nullptr;
  next.accumulate(leaf, at::ones({4, 3}));
  BOOST_TEST(at::equal(next.find(leaf), at::full({4, 3}, 2.0)));
  BOOST_TEST(next.find(leaf).data_ptr() == memory);
}

// TB-1
BOOST_AUTO_TEST_CASE(its_leaves_live_as_long_as_it_does) {
  gradient_table table;
  at::Tensor leaf = at::randn({3}).requires_grad_();
  const c10::weak_intrusive_ptr<at::TensorImpl> watched(leaf.getIntrusivePtr());
  table.accumulate(leaf, at::ones({3}));
  leaf.reset();
  BOOST_TEST(!watched.expired());
  table.clear();
  BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_CASE(tables_merge) {
  const auto a = at::randn({3}).requires_grad_();
  const auto b = at::randn({3}).requires_grad_();
  const auto c = at::randn({3}).requires_grad_();
  const c10::AutoGradMode off(false);
  gradient_table first;
  gradient_table second;
  first.accumulate(a, at::full({3}, 1.0));
  first.accumulate(b, at::full({3}, 2.0));
  second.accumulate(b, at::full({3}, 3.0));
  second.accumulate(c, at::full({3}, 4.0));
  second.accumulate(c, at::Tensor());
  first.merge(std::move(second));
  BOOST_TEST(first.size() == 3u);
  BOOST_TEST(second.empty());
  BOOST_TEST(at::equal(first.find(b), at::full({3}, 5.0)));
  BOOST_TEST(at::equal(first.find(c), at::full({3}, 4.0)));
  BOOST_TEST(!first.find(at::ones({3})).defined());
}

BOOST_AUTO_TEST_CASE(in_grad_mode_sums_keep_their_graph) {
  const auto leaf = at::randn({3}).requires_grad_();
  gradient_table table;
  table.accumulate(leaf, leaf * 2);
  table.accumulate(leaf, leaf * leaf);
  BOOST_TEST(table.find(leaf).requires_grad());
  BOOST_TEST(at::equal(table.find(leaf), leaf * 2 + leaf * leaf));
}

BOOST_AUTO_TEST_SUITE_END()
