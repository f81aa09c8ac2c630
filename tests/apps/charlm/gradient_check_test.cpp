// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/gradient_check.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <torch/torch.h>

#include "apps/charlm/model.hpp"
#include "apps/charlm/stage_module.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::named_tensors;
using troupe::apps::test::says;

BOOST_AUTO_TEST_SUITE(gradient_check)

namespace {

constexpr model_shape small{.vocabulary = 11, .blocks = 4, .width = 16, .heads = 2, .context = 8};

at::Tensor tokens(std::int64_t windows) { return at::arange(windows * 8, at::kLong).remainder(11).view({windows, 8}); }

}  // namespace

BOOST_AUTO_TEST_CASE(the_same_bits_do_not_differ) {  // GC-1
  const auto nan = at::full({2}, std::numeric_limits<double>::quiet_NaN());
  BOOST_TEST(!first_difference({{"a", nan}, {"b", at::Tensor{}}}, {{"a", nan.clone()}, {"b", at::Tensor{}}}).has_value());
}

BOOST_AUTO_TEST_CASE(one_bit_is_told_by_parameter_index_and_values) {  // GC-1, GC-2
  auto came = at::ones({2, 3});
  came[1][0] = std::nextafter(1.0f, 2.0f);
  const auto told = first_difference({{"weight", came}}, {{"weight", at::ones({2, 3})}});
  BOOST_REQUIRE(told.has_value());
  for (const char* word : {"weight", "1 of 6", "element 3 of [2, 3]", "1.00000012", "process 1"})
    BOOST_TEST(told->find(word) != std::string::npos, *told);
}

BOOST_AUTO_TEST_CASE(zero_differs_from_minus_zero) {  // GC-1
  BOOST_TEST(first_difference({{"a", at::zeros(1)}}, {{"a", -at::zeros(1)}}).has_value());
}

BOOST_AUTO_TEST_CASE(a_gradient_that_one_side_lacks_is_told) {  // GC-2
  BOOST_TEST(first_difference({}, {{"lost", at::ones(1)}}).value().find("lost") != std::string::npos);
  BOOST_TEST(first_difference({{"more", at::ones(1)}}, {}).value().find("more") != std::string::npos);
  BOOST_TEST(first_difference({{"other", at::ones(2)}}, {{"other", at::ones(1)}}).value().find("[2]") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(parameters_are_copied_by_name_or_not_at_all) {
  whole_model from{small, 2, 5};
  whole_model to{small, 2, 6};
  std::vector<named_tensors> all{parameters_of(*from.stages()[0]), parameters_of(*from.stages()[1])};
  copy_parameters(all, to);
  BOOST_TEST(at::equal(to.forward(tokens(2)), from.forward(tokens(2))));
  all[1][0].first = "no_such";
  BOOST_CHECK_EXCEPTION(copy_parameters(all, to), std::runtime_error, says({"stage 2", "no_such"}));
}

BOOST_AUTO_TEST_SUITE_END()
