// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <numeric>
#include <stdexcept>

#include <torch/torch.h>

#include "apps/charlm/generation.hpp"
#include "apps/charlm/gradient_check.hpp"
#include "apps/charlm/micro_batches.hpp"
#include "apps/charlm/model.hpp"
#include "apps/charlm/recipe.hpp"
#include "apps/charlm/stage_module.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using troupe::named_tensors;
using troupe::apps::test::says;

namespace {

constexpr model_shape small{.vocabulary = 11, .blocks = 4, .width = 16, .heads = 2, .context = 8};

at::Tensor tokens(std::int64_t windows) { return at::arange(windows * 8, at::kLong).remainder(11).view({windows, 8}); }

}  // namespace

BOOST_AUTO_TEST_SUITE(model_in_stages)

BOOST_AUTO_TEST_CASE(stages_in_a_row_are_the_whole_model) {  // SG-1
  whole_model one{small, 1, 5};
  const auto expected = one.forward(tokens(3));
  BOOST_TEST((expected.sizes() == at::IntArrayRef{3, 8, 11}));
  for (std::int64_t count = 2; count <= 4; ++count)
    BOOST_TEST(at::equal(whole_model(small, count, 5).forward(tokens(3)), expected));
  BOOST_TEST(!at::equal(whole_model(small, 1, 6).forward(tokens(3)), expected));
}

BOOST_AUTO_TEST_CASE(a_character_does_not_see_those_after_it) {
  whole_model model{small, 2, 5};
  auto changed = tokens(1).clone();
  changed[0][5] = 9;
  const auto before = model.forward(tokens(1));
  const auto after = model.forward(changed);
  BOOST_TEST(at::allclose(before.narrow(1, 0, 5), after.narrow(1, 0, 5)));
  BOOST_TEST(!at::allclose(before.narrow(1, 5, 1), after.narrow(1, 5, 1)));
}

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  whole_model model{small, 2, 5};
  const batch windows{tokens(4), tokens(4).remainder(7)};
  for (const auto& of_stage : single_process_gradients(model, windows, {{4}}))
    for (const auto& [name, gradient] : of_stage)
      BOOST_TEST((gradient.defined() && gradient.abs().sum().item<double>() > 0), name);
}

BOOST_AUTO_TEST_CASE(an_input_that_does_not_fit_is_told_what_would) {  // SG-2
  whole_model model{small, 2, 5};
  BOOST_CHECK_EXCEPTION(model.stages()[0]->forward(at::zeros({2, 9}, at::kLong)), std::runtime_error,
                        says({"stage 1 of 2", "1 to 8", "[2, 9]"}));
  BOOST_CHECK_EXCEPTION(model.stages()[0]->forward(at::zeros({2, 8})), std::runtime_error, says({"int64", "Float"}));
  BOOST_CHECK_EXCEPTION(model.stages()[1]->forward(at::zeros({2, 8, 17})), std::runtime_error,
                        says({"stage 2 of 2", "16", "[2, 8, 17]"}));
  BOOST_CHECK_EXCEPTION(model.stages()[1]->forward(at::Tensor{}), std::runtime_error, says({"undefined"}));
}

BOOST_AUTO_TEST_CASE(a_shape_that_can_not_be_is_told_what_would_do) {
  auto uneven = small;
  uneven.heads = 3;
  BOOST_CHECK_EXCEPTION(uneven.check(), std::runtime_error, says({"--width 16", "--heads 3", "--width 18"}));
  BOOST_CHECK_EXCEPTION(stage(small, {0, 5}, 1), std::runtime_error, says({"1 to 4"}));
  BOOST_TEST((model_shape::from_attributes(small.to_attributes()) == small));
}

BOOST_AUTO_TEST_CASE(targets_below_zero_do_not_count) {
  const auto logits = at::randn({1, 4, 11});
  const auto targets = at::tensor({3, -1, 5, -1}, at::kLong).view({1, 4});
  const auto some = logits.index_select(1, at::tensor({0, 2}, at::kLong));
  const auto of_some = character_loss(some, at::tensor({3, 5}, at::kLong).view({1, 2}));
  BOOST_TEST(at::allclose(character_loss(logits, targets), of_some));
  BOOST_TEST(at::allclose(character_loss(logits, targets, 0.25), of_some * 0.25));
}

BOOST_AUTO_TEST_CASE(generated_text_is_the_same_for_the_same_seed) {
  whole_model model{small, 2, 5};
  const vocabulary words{U"abcdefghijk"};
  generation_settings how;
  how.length = 30;
  how.prompt = U"abcabcabcabc";
  const auto once = generate(model, small, words, how);
  BOOST_TEST(once.size() == 30u);
  BOOST_TEST((generate(model, small, words, how) == once));
  std::u32string taken;
  const auto some = generate(model, small, words, how, [&](char32_t next) {
    taken += next;
    return taken.size() < 7;
  });
  BOOST_TEST((taken == once.substr(0, 7)));
  BOOST_TEST((some == taken));
  how.seed = 2;
  BOOST_TEST((generate(model, small, words, how) != once));
  how.prompt = U"z";
  BOOST_CHECK_EXCEPTION(generate(model, small, words, how), std::runtime_error, says({"'z'"}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(micro_batches_of_a_batch)

BOOST_AUTO_TEST_CASE(all_windows_are_dealt_as_equally_as_can_be) {
  for (std::int64_t windows = 1; windows <= 40; ++windows)
    for (std::int64_t count = 1; count <= windows; ++count) {
      const auto sizes = micro_batch_sizes(windows, count);
      BOOST_REQUIRE_EQUAL(sizes.size(), static_cast<std::size_t>(count));
      BOOST_REQUIRE_EQUAL(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), windows);
      BOOST_REQUIRE_GE(sizes.back(), 1);
      BOOST_REQUIRE_LE(sizes.front() - sizes.back(), 1);
    }
}

BOOST_AUTO_TEST_CASE(contexts_share_the_parts_as_equally_as_can_be_and_in_order) {
  BOOST_TEST((share_out({4, 3, 3, 3, 2}, 2) == batch_cuts{{4, 3}, {3, 3, 2}}));
  BOOST_TEST((share_out({4, 3}, 1) == batch_cuts{{4, 3}}));
  BOOST_TEST((share_out({4, 3}, 5) == batch_cuts{{4}, {3}}));
}

BOOST_AUTO_TEST_CASE(more_parts_than_windows_are_refused) {
  BOOST_CHECK_EXCEPTION(micro_batch_sizes(4, 5), std::runtime_error, says({"1 to 4", "--micro-batches is 5"}));
}

BOOST_AUTO_TEST_CASE(the_parts_losses_sum_to_the_batchs) {
  const batch whole{tokens(6), tokens(6).remainder(7)};
  const auto logits = at::randn({6, 8, 11});
  double sum = 0;
  std::int64_t at = 0;
  for (const auto& share : cut(whole, {{1, 3}, {2}}))
    for (const auto& part : share) {
      const auto windows = part.windows.targets.size(0);
      sum += character_loss(logits.narrow(0, at, windows), part.windows.targets, part.share).item<double>();
      at += windows;
    }
  BOOST_TEST(sum == character_loss(logits, whole.targets).item<double>(), boost::test_tools::tolerance(1e-5));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(gradient_check)

BOOST_AUTO_TEST_CASE(the_same_bits_do_not_differ) {  // GC-1
  const auto nan = at::full({2}, std::numeric_limits<double>::quiet_NaN());
  BOOST_TEST(!first_difference({{"a", nan}, {"b", at::Tensor{}}}, {{"a", nan.clone()}, {"b", at::Tensor{}}}).has_value());
}

BOOST_AUTO_TEST_CASE(one_bit_is_told_by_parameter_place_and_values) {  // GC-1, GC-2
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

BOOST_AUTO_TEST_SUITE(recipe_of_a_run)

BOOST_AUTO_TEST_CASE(the_learning_rate_warms_up_and_falls) {
  const recipe how;
  BOOST_TEST(how.rate_at(0, 0) == how.learning_rate / 20, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(how.rate_at(19, 0) == how.learning_rate, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(how.rate_at(500, 0.5) == how.learning_rate * 0.51, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(how.rate_at(900, 1) == how.learning_rate * 0.02, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(how.rate_at(900, 7) == how.rate_at(900, 1));
}

BOOST_AUTO_TEST_CASE(values_that_can_not_be_are_named_by_their_option) {
  recipe how;
  how.micro_batches = how.batch + 1;
  BOOST_CHECK_EXCEPTION(how.check(), std::runtime_error, says({"--micro-batches", std::to_string(how.micro_batches)}));
  how = {};
  how.learning_rate = -1;
  BOOST_CHECK_EXCEPTION(how.check(), std::runtime_error, says({"--learning-rate", "-1"}));
}

BOOST_AUTO_TEST_SUITE_END()
