// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/repeated_elements.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <caf/error.hpp>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/messages.hpp>

#include "messages/samples.hpp"

BOOST_AUTO_TEST_SUITE(repeated_elements)

namespace {

using troupe::with_repetition;
using troupe::without_repetition;
using sizes = std::vector<std::int64_t>;

std::string why(const at::Tensor& tensor, const sizes& shape) {
  try {
    with_repetition(tensor, shape);
  } catch (const troupe::error& refused) {
    return refused.code() == troupe::errc::malformed_message ? refused.what() : "another code";
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_tensor_that_was_expanded_is_the_same_after_the_way_there_and_back) {
  const auto row = at::arange(4, at::kFloat);
  for (const auto& whole : {at::ones({}).expand({3, 4}), row.expand({3, 4}), row.view({4, 1}).expand({4, 5}),
                            row.view({2, 1, 2}).expand({2, 7, 2}), row.view({2, 2}).t().unsqueeze(1).expand({2, 3, 2})}) {
    sizes shape;
    const auto stored = without_repetition(whole, shape);
    BOOST_TEST(stored.numel() < whole.numel());
    BOOST_TEST(stored.const_data_ptr() == whole.const_data_ptr());
    const auto back = with_repetition(stored.clone(), shape);
    BOOST_TEST(at::equal(back, whole));
    BOOST_TEST(back.storage().nbytes() < whole.nbytes());
  }
}

BOOST_AUTO_TEST_CASE(a_tensor_that_repeats_nothing_stays_as_it_is) {
  for (const auto& whole : {at::Tensor(), at::ones({2, 3}), at::ones({}), at::ones({0, 3}).expand({0, 3}), at::ones({2, 3}).t(),
                            at::sparse_coo_tensor(at::zeros({1, 1}, at::kLong), at::ones({1}), {3}),
                            at::conj(at::ones({1}, at::kComplexFloat)).expand({4}), at::_efficientzerotensor({3}),
                            at::ones({1, 3}).expand({1, 3})}) {
    sizes shape{7};
    BOOST_TEST(without_repetition(whole, shape).is_same(whole));
    BOOST_TEST(shape.empty());
    BOOST_TEST(with_repetition(whole, shape).is_same(whole));
  }
}

BOOST_AUTO_TEST_CASE(a_shape_that_a_tensor_can_not_have_is_refused) {
  const auto row = at::ones({1, 3});
  BOOST_TEST(why(row, {4, 3}).empty());
  for (const auto& shape :
       {sizes{4, 2}, sizes{4}, sizes{2, 4, 3}, sizes{0, 3}, sizes{-1, 3}, sizes{std::int64_t{1} << 60, 3}, sizes{4, 1}}) {
    const auto text = why(row, shape);
    BOOST_TEST(text.find("Float[1, 3]") != std::string::npos, text);
    BOOST_TEST(text.find("can't be expanded") != std::string::npos, text);
  }
  BOOST_TEST(!why(at::Tensor(), {2}).empty());
  BOOST_TEST(!why(at::sparse_coo_tensor(at::zeros({1, 1}, at::kLong), at::ones({1}), {1}), {2}).empty());
}

BOOST_AUTO_TEST_CASE(gradients_carry_a_shape_each_or_none) {
  troupe::propagate_gradients sent;
  sent.carried.weight = {1};
  sent.gradients = {at::ones({1}), at::ones({2})};
  sent.shapes = {{5}, {}};
  troupe::propagate_gradients came;
  BOOST_REQUIRE(!troupe::testing::decode(troupe::testing::encoded(sent), came));
  BOOST_TEST((came.shapes == sent.shapes));
  sent.shapes = {{5}};
  const auto failed = caf::to_string(troupe::testing::decode(troupe::testing::encoded(sent), came));
  BOOST_TEST(failed.find("shapes has not as many entries as there are gradients") != std::string::npos, failed);
}

BOOST_AUTO_TEST_SUITE_END()
