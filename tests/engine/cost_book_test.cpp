// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/cost_book.hpp>

using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(cost_books)

namespace {

template <int>
struct numbered : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
};

template <int... Is>
std::vector<cost_book::kind> numbered_kinds(std::integer_sequence<int, Is...>) {
  return {cost_book::kind_of(numbered<Is>(), {at::ones({4})})...};
}

}  // namespace

// The type infos of the kinds are neighbours in memory, so nearly every kind has an entry of its own.
BOOST_AUTO_TEST_CASE(know_many_kinds_at_once) {
  cost_book book;
  const auto kinds = numbered_kinds(std::make_integer_sequence<int, 64>());
  for (const auto each : kinds) book.note(each, 700);
  BOOST_TEST(std::count_if(kinds.begin(), kinds.end(), [&](auto each) { return book.cost(each) == 700; }) >= 60);
}

// CB-1
BOOST_AUTO_TEST_CASE(know_what_a_kind_of_function_cost_when_it_ran_last) {
  cost_book book;
  const auto x = at::ones({4}).requires_grad_();
  const auto sin = x.sin();
  const auto cos = x.cos();
  const auto small = cost_book::kind_of(*sin.grad_fn(), {at::ones({4})});
  const auto large = cost_book::kind_of(*sin.grad_fn(), {at::ones({4000})});
  const auto other = cost_book::kind_of(*cos.grad_fn(), {at::ones({4})});
  BOOST_TEST(book.cost(small) == cost_book::unknown);
  book.note(small, 700);
  book.note(large, 90'000);
  book.note(small, 800);
  BOOST_TEST(book.cost(small) == 800);
  BOOST_TEST(book.cost(large) == 90'000);
  BOOST_TEST(book.cost(other) == cost_book::unknown);
  BOOST_TEST(cost_book::kind_of(*sin.grad_fn(), {at::Tensor(), at::ones({4})}) == small);
  BOOST_TEST(cost_book::kind_of(*sin.grad_fn(), {at::Tensor()}) != small);
}

// CB-1: kinds with the same entry are told apart.
BOOST_AUTO_TEST_CASE(take_no_cost_from_another_kind) {
  const auto book = std::make_unique<cost_book>();
  constexpr cost_book::kind one = 5;
  constexpr cost_book::kind other = one + (cost_book::kind{1} << 40);
  book->note(one, 700);
  BOOST_TEST(book->cost(one) == 700);
  BOOST_TEST(book->cost(other) == cost_book::unknown);
}

BOOST_AUTO_TEST_SUITE_END()
